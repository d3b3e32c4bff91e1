"""`[Tensors]` blocks: Python expressions and CSV columns become values."""

import csv
import io
import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ingot import types
from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.hit import NUMBER, Block, Tree, read_contents, unknown_fields
from ingot.model.untrusted import Bounds, Refused, evaluate, map_tensors, untrusted_code
from ingot.types import SR2, WR2, Scalar, Value, Vec, expressions, regions
from ingot.types.components import list_component_suffixes

__all__ = ["TENSORS", "Tensors", "python_blocks"]

_CSV: dict[str, tuple[type[Value], tuple[str, ...]]] = {
    f"CSV{kind.__name__}": (kind, list_component_suffixes(kind)) for kind in (Scalar, Vec, SR2, WR2)
}
_COLUMNS = {
    "csv_file": "a file with a line of names and lines of numbers, relative to the input file",
    "variable": "whose columns they are: each is called by it and the component, as stress_xx",
    "column_names": "a column for each component, in place of a variable",
}
TENSORS = {
    "Python": {"expr": "an expression or statements of torch and of the kinds of values"},
    **dict.fromkeys(_CSV, _COLUMNS),
}
"""The types of `[Tensors]`, each with its options and what they say."""


_FLOATING = frozenset(["zeros", "ones", "eye", "linspace", "logspace", "rand", "randn", "empty"])
"""Functions that make tensors of the default dtype, whatever their numbers are."""
_INFERRED = frozenset(["tensor", "as_tensor", "full", "arange"])
"""Functions that make such tensors where a number is no whole number."""
_EXPLICIT = frozenset(["to", "type", "float", "type_as"])
"""Functions that say the precision of what they make."""


class _Double(TorchFunctionMode):
    """Numbers without a dtype become float64, in this thread alone: torch's default is global."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        chosen = kwargs or {}
        if any(issubclass(kind, Value) for kind in types):
            with self:
                return Value.__torch_function__(func, types, args, chosen)
        name = getattr(func, "__name__", "")
        said = chosen.get("dtype") is not None or any(isinstance(x, torch.dtype) for x in args)
        if said or name in _EXPLICIT:
            return func(*args, **chosen)
        if name in _FLOATING:
            return func(*args, **{**chosen, "dtype": torch.float64})
        found = func(*args, **chosen)
        if not isinstance(found, Tensor) or found.dtype != torch.float32:
            return found
        narrow: list[Tensor] = []
        map_tensors(lambda x: narrow.append(x) if x.is_floating_point() else None,
                    (*args, *chosen.values()))  # fmt: skip
        if narrow or any(isinstance(x, np.ndarray | np.generic) for x in args):
            return found
        if name in _INFERRED:
            return func(*args, **{**chosen, "dtype": torch.float64})
        if name == "where":
            numbers = [torch.tensor(x, dtype=torch.float64) if isinstance(x, float) else x
                       for x in args]  # fmt: skip
            return func(*numbers, **chosen)
        doubled = {key: map_tensors(_as_double, x) for key, x in chosen.items()}
        return func(*map_tensors(_as_double, args), **doubled)


def _as_double(value: Tensor) -> Tensor:
    return value if value.is_floating_point() else value.double()


def _names() -> dict[str, Any]:
    names: dict[str, Any] = {n: getattr(types, n) for n in types.__all__}
    for more in (regions, expressions):
        names.update({n: getattr(more, n) for n in more.__all__})
    return {**names, "torch": torch, "math": math, "np": np}


def python_blocks(tree: Tree) -> tuple[str, ...]:
    """The blocks of a file whose Python is run where their values are asked for.

    What presets write is theirs, and not the file's.
    """
    blocks = (block for part in tree.section("Tensors") for block in part.blocks)
    own = (block for block in blocks if block.path not in tree.written)
    return tuple(f"[{block.path}]" for block in own if block.type == "Python")


class Tensors:
    """The tensors of a file, each evaluated when it is first asked for.

    untrusted: Python is evaluated within bounds, by names and syntax that are listed.
    """

    def __init__(self, tree: Tree, *, untrusted: bool = False) -> None:
        self.tree = tree
        self._bounds = Bounds() if untrusted else None
        self._done: dict[str, Any] = {}
        self._open: list[str] = []

    def __contains__(self, name: str) -> bool:
        return self.tree.find("Tensors", name) is not None

    def __getitem__(self, name: str) -> Any:
        """The value of an entry: a kind, or a raw torch tensor where the expression gives one."""
        if name not in self._done:
            block = self.tree.find("Tensors", name)
            if block is None:
                raise KeyError(name)
            if name in self._open:
                chain = " -> ".join([*self._open, name])
                raise _problem(
                    block, "circular-tensor", f"[{name}] refers to itself: {chain}", None
                )
            self._open.append(name)
            try:
                self._done[name] = self._value(block)
            finally:
                self._open.pop()
        return self._done[name]

    def read_real(self, name: str) -> Any:
        """The value of an entry that a model or a driver reads, whose numbers are real."""
        found = self[name]
        data = found.data if isinstance(found, Value) else found
        if isinstance(data, Tensor) and data.is_complex():
            block = self.tree.require("Tensors", name)
            message = f"[Tensors/{name}] holds complex numbers, and every value is of real ones"
            fix = "take the .real or the .imag of its tensor"
            span = block.require("expr").span
            raise IngotError([Problem("wrong-value", message, span, fix)])
        return found

    def _value(self, block: Block) -> Any:
        kind = block.require("type").string()
        if kind == "Python":
            raise_if(unknown_fields(block, ("type", *TENSORS[kind])))
            return self._expression(block, block.require("expr").string())
        if kind in _CSV:
            return self._csv(block, *_CSV[kind])
        fix = did_you_mean(kind, TENSORS)
        raise _problem(block, "unknown-type", f"no tensor type '{kind}'", fix)

    def _expression(self, block: Block, text: str) -> Any:
        first, *rest = text.split("\n")
        source = "\n".join([first.strip(), textwrap.dedent("\n".join(rest))]).strip()
        try:
            with _Double():
                if self._bounds is not None:
                    return evaluate(source, self.__getitem__, self._bounds)
                return _run(source, f"<{block.name}>", _Scope(self))
        except IngotError:
            raise
        except Refused as error:
            field = block.require("expr")
            message = f"the expression of [{block.name}] is not run: {error}"
            raise IngotError([untrusted_code(message, field.span)]) from None
        except Exception as error:
            field = block.require("expr")
            raise IngotError([Problem(
                "tensor-expression",
                f"the expression of [{block.name}] fails: {type(error).__name__}: {error}",
                field.span, "correct the Python expression",
            )]) from error  # fmt: skip

    def _csv(self, block: Block, kind: type[Value], suffixes: tuple[str, ...]) -> Value:
        raise_if(unknown_fields(block, ("type", *_COLUMNS)))
        variable, columns = block.field("variable"), block.field("column_names")
        if (variable is None) == (columns is None):
            raise _problem(
                block, "missing-option", "give exactly one of 'variable' and 'column_names'", None
            )
        if columns is not None:
            wanted = list(columns.words())
        else:
            assert variable is not None
            wanted = [variable.string() + s for s in suffixes]
        if len(wanted) != len(suffixes):
            raise _problem(
                block, "wrong-value", f"{kind.__name__} needs {len(suffixes)} columns", None
            )
        file = block.require("csv_file")
        path = Path(self.tree.file.parent if self.tree.file else ".") / file.string()
        try:
            rows = list(
                csv.reader(io.StringIO(read_contents(path, file.span)), skipinitialspace=True)
            )
        except csv.Error as error:
            message = f"'{path}' is no CSV file: {error}"
            fix = "write a line of names, then lines of numbers"
            raise IngotError([Problem("wrong-value", message, file.span, fix)]) from error
        header = [h.strip() for h in rows[0]] if rows else []
        missing = [w for w in wanted if w not in header]
        if missing:
            raise IngotError([
                Problem("unknown-column", f"{path.name} has no column '{m}'", file.span,
                        did_you_mean(m, header))
                for m in missing
            ])  # fmt: skip
        places = [header.index(w) for w in wanted]
        short = [i for i, row in enumerate(rows[1:], 2) if row and len(row) != len(header)]
        if short:
            raise IngotError([Problem(
                "ragged-csv", f"{path.name} line {short[0]} does not have {len(header)} values",
                file.span, None,
            )])  # fmt: skip
        words = [(i, row[p].strip()) for i, row in enumerate(rows[1:], 2) if row for p in places]
        strange = [(i, word) for i, word in words if not NUMBER.fullmatch(word)]
        if strange:
            raise IngotError([Problem(
                "wrong-value",
                f"{path.name} line {strange[0][0]} has '{strange[0][1]}' where a number belongs",
                file.span, None,
            )])  # fmt: skip
        numbers = [float(word) for _, word in words]
        return kind(torch.tensor(numbers, dtype=torch.float64).reshape(-1, *kind.base))


def _run(source: str, place: str, scope: dict[str, Any]) -> Any:
    """The value of an expression, or of `result` after a block."""
    try:
        code = compile(source, place, "eval")
    except SyntaxError:
        exec(compile(source, place, "exec"), scope)
        if "result" not in scope:
            raise NameError("the block assigns no 'result'") from None
        return scope["result"]
    return eval(code, scope)


class _Scope(dict[str, Any]):
    """Names of an expression; unknown ones are looked up among the other tensors."""

    def __init__(self, tensors: Tensors) -> None:
        super().__init__(_names())
        self._tensors = tensors

    def __missing__(self, name: str) -> Any:
        if name in self._tensors:
            return self._tensors[name]
        raise KeyError(name)


def _problem(block: Block, code: str, message: str, fix: str | None) -> IngotError:
    return IngotError([Problem(code, message, block.span, fix)])
