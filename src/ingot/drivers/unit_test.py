"""ModelUnitTest: the values of one model, and its derivatives against an independent way."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ingot.drivers.plain import plain
from ingot.drivers.regression import read_tolerance
from ingot.drivers.values import (
    DRIVEN,
    Given,
    Shapes,
    find_declared_shapes,
    find_unknown,
    find_wrong_kinds,
    gather_problems,
    list_options,
    read_list,
    read_model,
    spread,
)
from ingot.drivers.verdict import Tolerance, Verdict, compare, judge
from ingot.errors import IngotError, Problem, raise_if
from ingot.execute import DEFAULT_BACKEND, Backend, Executor, executor, failures
from ingot.execute.status import find_times
from ingot.hit import Block, unknown_blocks, unknown_fields
from ingot.model import Factory, Model, lag
from ingot.program import Program, along_direction, prepared

__all__ = ["ModelUnitTest"]

Arrays = dict[str, Tensor]
TOLERANCES = ("value_rel_tol", "value_abs_tol", "derivative_rel_tol", "derivative_abs_tol")


@dataclass(frozen=True, eq=False)
class ModelUnitTest:
    """Checks listed outputs of a model, and its derivative along a fixed direction of every input.

    model: the model; input_<kind>_names, input_<kind>_values: all its inputs;
    output_<kind>_names, output_<kind>_values: what must come out; value_rel_tol, value_abs_tol,
    derivative_rel_tol, derivative_abs_tol: how far a number may be off.
    """

    block: Block
    model: Model
    inputs: dict[str, Given]
    outputs: dict[str, Given]
    shapes: Shapes
    values: Tolerance
    derivatives: Tolerance

    @staticmethod
    def build(block: Block, factory: Factory) -> "ModelUnitTest":
        """The test that a block describes; all that is wrong with it is told at once."""
        known = ("type", "model", *TOLERANCES, *list_options(("input_", "output_")))
        problems = [*unknown_fields(block, known), *unknown_blocks(block)]
        inputs = read_list(block, factory, "input_", problems)
        outputs = read_list(block, factory, "output_", problems)
        model, values, derivatives = None, Tolerance(), Tolerance()
        with gather_problems(problems):
            values = read_tolerance(block, "value_rel_tol", "value_abs_tol")
            derivatives = read_tolerance(block, "derivative_rel_tol", "derivative_abs_tol")
        with gather_problems(problems):
            model = read_model(block, factory)
        if model is None:
            raise IngotError(problems)
        problems += find_misfits(block, model, inputs, outputs)
        shapes = find_declared_shapes(model, factory, inputs.values(), problems)
        raise_if(problems)
        return ModelUnitTest(block, model, inputs, outputs, shapes, values, derivatives)

    @cached_property
    def program(self) -> Program:
        """The model with its derivative along a direction."""
        return along_direction(prepared(self.model, self.shapes))

    @cached_property
    def given(self) -> Arrays:
        """The inputs on all their structural axes."""
        return {name: spread(given, self.shape(name)) for name, given in self.inputs.items()}

    def run(self, backend: Backend | None = None) -> Verdict:
        """Compare the values, then the derivative along every input."""
        backend = backend or DEFAULT_BACKEND
        if backend == "inductor" and self.program.solves:
            message = f"[{self.block.name}] checks derivatives through a solve, which graphs lack"
            fix = "choose --backend kernel or interpret"
            raise IngotError([Problem("wrong-backend", message, self.block.span, fix)])
        ready = executor(self.program, backend)
        still = {f"d.{name}": torch.zeros_like(x) for name, x in self.given.items()}
        found, statuses = ready({**self.given, **still})
        failed = failures(statuses, find_times(self.given))
        if failed:
            return Verdict(1, failed)
        bases = {name: kind.base for name, kind in self.model.outputs.items()}
        pairs = [
            (name, found[name], expected.value.data, bases[name], self.values)
            for name, expected in self.outputs.items()
        ]
        for by, x in self.given.items():
            along = choose_direction(x)
            slopes, _ = ready({**self.given, **still, f"d.{by}": along})
            expected = self.expected(ready, still, by, along)
            pairs += [
                (f"d({name})/d({by})", slopes[f"d.{name}"], expected[name], base, self.derivatives)
                for name, base in bases.items()
            ]
        mismatches = [mismatch for pair in pairs if (mismatch := compare(*pair)) is not None]
        return judge(len(pairs), mismatches, "what is expected", self.block.span)

    def shape(self, name: str) -> tuple[int, ...]:
        """The structural shape of a variable."""
        return self.shapes.get(lag(name)[0], ())

    def expected(self, ready: Executor, still: Arrays, by: str, along: Tensor) -> Arrays:
        """The derivative along one input by torch, or by differences where the model solves."""
        evaluate = plain(self.model, {name: len(self.shape(name)) for name in self.given})
        at = self.given[by]
        if evaluate is None:
            return difference_centrally(
                lambda x: ready({**self.given, **still, by: x})[0], at, along
            )
        return torch.func.jvp(lambda x: evaluate({**self.given, by: x}), (at,), (along,))[1]


def find_misfits(
    block: Block, model: Model, inputs: Mapping[str, Given], outputs: Mapping[str, Given]
) -> Iterator[Problem]:
    """Variables that the model does not have, has of another kind, or that are left out."""
    yield from find_unknown(inputs.values(), model.inputs, f"[{model.name}] has no input")
    yield from find_unknown(outputs.values(), model.outputs, f"[{model.name}] has no output")
    yield from find_wrong_kinds(inputs.values(), model.inputs, model)
    yield from find_wrong_kinds(outputs.values(), model.outputs, model)
    lists = (field for kind in DRIVEN if (field := block.field(f"input_{kind}_names")) is not None)
    named = {word for field in lists for word in field.words()}
    for name, kind in model.inputs.items():
        if name not in named:
            message = f"[{model.name}] needs a value for '{name}'"
            fix = f"list it in 'input_{kind.__name__}_names'"
            yield Problem("missing-variable", message, block.span, fix)
    if not outputs:
        message = f"no output of [{model.name}] is listed"
        fix = f"list one of: {', '.join(model.outputs)}"
        yield Problem("nothing-checked", message, block.span, fix)


def choose_direction(x: Tensor) -> Tensor:
    """The fixed direction of an input with n numbers, (1, ..., n) / (n + 1)."""
    n = x.numel()
    return (torch.arange(1, n + 1, dtype=x.dtype) / (n + 1)).reshape(x.shape)


def difference_centrally(function: Callable[[Tensor], Arrays], x: Tensor, along: Tensor) -> Arrays:
    """The derivative by central differences of two widths, extrapolated to none."""
    size = float(x.abs().max()) or 1.0
    wide, narrow = (central(function, x, along, size * width) for width in (1e-3, 5e-4))
    return {name: (4.0 * narrow[name] - wide[name]) / 3.0 for name in wide}


def central(function: Callable[[Tensor], Arrays], x: Tensor, along: Tensor, width: float) -> Arrays:
    ahead, behind = function(x + width * along), function(x - width * along)
    return {name: (ahead[name] - behind[name]) / (2.0 * width) for name in ahead}
