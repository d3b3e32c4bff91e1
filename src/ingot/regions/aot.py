"""A module and an example -> its distinct pieces compiled ahead of time -> a folder -> a module.

Strict capture by Dynamo gives one graph, which is cut as `backend.py` cuts it; each distinct piece
is a joint of its own. A package is native code: load only those you trust as you trust a program.
"""

import re
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import SymInt, Tensor, fx, nn

from ingot.errors import IngotError, Problem, raise_if
from ingot.graphs import torch_private
from ingot.graphs.capture import Captured, Leaf
from ingot.graphs.sizes import Open, Size
from ingot.graphs.tree import Tree, flatten, unflatten
from ingot.regions.backend import PieceCall, Stitching, join_needs
from ingot.regions.cut import Piece, cut, merge_dear, refuse_cut
from ingot.regions.mark import Blocks, enter_block, find_marks, find_no_switch, leave_block
from ingot.regions.report import Report
from ingot.regions.run import Chain, UnitCall
from ingot.regions.units import Unit
from ingot.train import (
    Call,
    Compiler,
    Joint,
    Signature,
    Traced,
    assembled,
    partition,
    prepare,
    trace,
)
from ingot.train.ambient import find_ambient
from ingot.train.call import describe_tensor, renew
from ingot.train.compile import QUICK
from ingot.train.cut import count_operations
from ingot.train.package import Described as Package
from ingot.train.package import from_bytes, read_package, to_bytes, with_state, write
from ingot.train.ready import Code
from ingot.train.signature import Argument, Output

__all__ = ["Described", "Loaded", "load", "package"]


class Described(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a package of regions has besides its units; without `calls` the one unit is the whole.

    results: the values that the outputs of the module, and what it writes to attributes, are of.
    """

    signature: Signature
    calls: tuple[UnitCall, ...]
    results: tuple[int, ...]
    report: Report


class Loaded(Joint):
    """A module whose distinct blocks were each compiled once; its tensors keep their names."""

    own = Joint.own | {"described", "units", "recorded", "report"}

    def __init__(
        self, described: Described, units: Sequence[Code], tensors: Sequence[Tensor], *,
        cuda_graphs: bool = False, hooks: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        chain: Any = units[0]
        if described.calls:
            chain = Chain(
                described.signature, described.calls, described.results, units,
                cuda_graphs=cuda_graphs,
            )  # fmt: skip
        super().__init__([chain], tensors, hooks)
        self.described, self.units, self.recorded = described, tuple(units), cuda_graphs
        self.report = described.report

    def extra_repr(self) -> str:
        """The signature's first line, and what was compiled."""
        return f"{self.signature.head}\n{self.report}"

    @property
    def module(self) -> nn.Module:
        """What holds the tensors under the names that they had."""
        return self

    def save(self, folder: Any) -> None:
        """Write the package again, with the tensors as they are now."""
        write(folder, "regions", self.units, self.held(), self.described)

    def rebuild(self, tensors: Sequence[Tensor]) -> "Loaded":
        """The same with other tensors."""
        more: Any = {"cuda_graphs": self.recorded, "hooks": self.hooks}
        return Loaded(self.described, self.units, tensors, **more)

    def __reduce_ex__(self, _: Any) -> Any:
        return from_bytes, (to_bytes(self), load), self.list_hooks()


def load(folder: str | Path, *, cuda_graphs: bool = False) -> Loaded:
    """The module of a package."""
    raise_if(find_no_switch("cuda_graphs", cuda_graphs))
    described, units, values = read_package(folder, "regions", Package[Described])
    tensors = [*map(with_state, described.signature.held, values)]
    return Loaded(described, units, tensors, cuda_graphs=cuda_graphs)


def package(
    module: nn.Module, example: Any, blocks: Blocks, dynamic: Any, folder: Path, *, grad: bool,
    compiler: Compiler = "inductor",
) -> Loaded:  # fmt: skip
    """A package that is loaded, and shares the tensors of the module."""
    begun = time.perf_counter()
    report = Report(mode="aot")
    is_block = find_marks(module, blocks).find(module)
    torch_private.keep_calls((enter_block, leave_block))
    with torch.inference_mode(False), torch.set_grad_enabled(grad):
        call = _capture(module, example, dynamic, grad=grad)
        pieces = _cut(call, is_block)
        if isinstance(pieces, str):
            report.note_whole(pieces)
            codes = [_compile(trace(call), compiler)[0]]
            signature, calls, results = codes[0].signature, (), ()
        else:
            made = [_compile(traced, compiler) for traced in pieces.traces]
            codes, units = [code for code, _ in made], [unit for _, unit in made]
            signature, calls, results = pieces.signature, pieces.calls, pieces.results
            for i, (piece, one) in enumerate(zip(pieces.pieces, calls, strict=True)):
                known = any(other.unit == one.unit for other in calls[:i])
                report.note_unit(piece, units[one.unit], found=known)
    report.seconds = time.perf_counter() - begun
    described = Described(signature, calls, results, report)
    write(folder, "regions", codes, call.tensors, described)
    return Loaded(described, codes, call.tensors, hooks=torch_private.list_global_hooks())


def _compile(traced: Traced, compiler: Compiler) -> tuple[Code, Unit]:
    """The code of a piece, and the same as the report counts it."""
    begun = time.perf_counter()
    if not count_operations(traced.graph):  # views are made by whoever calls it
        compiler = "eager"
    (code,) = assembled(partition(traced), compiler, compiler, settings=QUICK).codes
    return code, Unit(code.forward, code.signature.constraints, time.perf_counter() - begun)


# capture


def _capture(module: nn.Module, example: Any, dynamic: Any, *, grad: bool) -> Call:
    """A call of the module; with `grad` gradients are computed of all that it does not write to."""
    leaves, tree = flatten(example)

    def prepare_call(asked: bool) -> Call:
        given = [
            x.detach().requires_grad_(asked and _is_real(x)) if isinstance(x, Tensor) else x
            for _, x in leaves
        ]
        return prepare(module, unflatten(tree, given), dynamic)

    if not grad:
        call = prepare_call(False)
        return renew(call, [False] * len(call.primals))
    try:
        call = prepare_call(True)
    except IngotError:  # a tensor that asks for its gradient cannot be written to
        call = prepare_call(False)
    written = _find_written(call)
    raise_if(_find_frozen(call, written))
    needs = [h.tensor.requires_grad for h in call.held]
    needs += [_is_real(x) for x in call.primals[len(needs) :]]
    return renew(call, [need and i not in written for i, need in enumerate(needs)])


def _find_frozen(call: Call, written: set[int]) -> Iterator[Problem]:
    """Parameters that learn and are written to, as those of an embedding with max_norm."""
    for i, held in enumerate(call.held):
        if i in written and held.parameter and held.tensor.requires_grad:
            told = f"'{held.names[0]}' asks for a gradient; it is written to, which carries none on"
            fix = "write to it outside of the module, or give grad=False"
            yield Problem("no-gradient", told, None, fix)


def _is_real(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _find_written(call: Call) -> set[int]:
    """The primals that a call writes to, as far as it runs on fake tensors."""
    trial = renew(call, [False] * len(call.primals))
    # what an operation raises is told where it is traced
    with suppress(Exception), torch_private.Modes.now().entered(), torch.no_grad(), trial.open.mode:
        trial.run(trial.primals)
    return {i for i, x in enumerate(trial.primals) if x._version}


# pieces


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A call as calls of distinct pieces, each traced once."""

    signature: Signature
    traces: tuple[Traced, ...]
    pieces: tuple[Piece, ...]
    calls: tuple[UnitCall, ...]
    results: tuple[int, ...]


def _cut(call: Call, is_block: Callable[[str, type], bool]) -> _Pieces | str:
    """The pieces of a call, or why it is compiled whole."""
    graph = call.captured.graph
    why = refuse_cut(graph.graph)
    if why is not None:
        return why
    parts = merge_dear([*cut(graph, is_block)])
    if not any(isinstance(part, Piece) and part.name for part in parts):
        return "it holds no block"
    walked = renew(call, [x.requires_grad for x in call.primals])
    places = zip(graph.graph.find_nodes(op="placeholder"), call.captured.inputs, strict=True)
    at = walked.look_up(range(len(call.primals)))
    number = {node: at(source) for node, source in places if source.kind != "size"}
    inputs = [*map(walked.look_up(walked.primals), call.captured.inputs)]
    with torch_private.tracing_context(walked.open.mode):
        stitching = Stitching(graph, parts, inputs, least=0)
        why = stitching.walk() or _find_left(stitching)
    if why is not None:
        return why
    traces: dict[Hashable, tuple[Traced, bool]] = {}
    rows: list[tuple[Piece, UnitCall]] = []
    rules = dict.fromkeys(call.captured.guards)
    count = len(call.primals)
    for one, needs in join_needs(stitching.calls):
        results = one.piece.outputs
        if not any(isinstance(stitching.values[n], Tensor) for n in one.piece.nodes):
            continue  # sizes, which follow from those of the call
        key = one.text, one.operands.key, needs
        if key not in traces:
            try:
                traces[key] = _trace_piece(one, needs)
            except IngotError as error:
                return f"'{one.piece.name or 'glue'}' alone: {error.problems[0].message}"
        traced, carries = traces[key]
        if not results and not count_operations(traced.graph):
            del traces[key]  # nobody reads it
            continue
        sizes = {name: walked.open.text(size) for name, size in one.operands.sizes.items()}
        rules |= dict.fromkeys(_rename(rule, sizes) for rule in traced.signature.constraints)
        number |= {node: count + i for i, node in enumerate(results)}
        gives = tuple(range(count, count := count + len(results)))
        reads = tuple(
            number[n] for n in one.piece.inputs if isinstance(stitching.values[n], Tensor)
        )
        unit = [*traces].index(key)
        rows.append((one.piece, UnitCall(
            unit, _place(one.piece), reads, gives, (), sizes, carries
        )))  # fmt: skip
    if not rows:
        return "its blocks compute nothing"
    if walked.open.tied():
        return f"it works for one size only: {', '.join(walked.open.tied())}"
    rules |= dict.fromkeys(walked.open.constraints())
    signature, results = _sign(walked, stitching, number, tuple(rules))
    calls = _end_values([row for _, row in rows], {*range(len(call.primals)), *results})
    units = tuple(traced for traced, _ in traces.values())
    return _Pieces(signature, units, tuple(piece for piece, _ in rows), calls, results)


def _find_left(stitching: Stitching) -> str | None:
    """What runs between pieces and is no piece itself, if there is such."""
    called = {id(one.piece) for one in stitching.calls}
    for part in stitching.parts:
        if id(part) in called:
            continue
        for node in part.nodes if isinstance(part, Piece) else (part,):
            if not isinstance(stitching.values[node], SymInt | int | float):
                name = getattr(node.target, "__name__", str(node.target))
                return f"'{name}' runs between blocks and cannot be compiled alone"
    return None


def _rename(rule: str, sizes: Mapping[str, Size]) -> str:
    """A rule on the sizes of a unit as one on those of the module."""

    def name(match: re.Match[str]) -> str:
        text = str(sizes[match[0]])
        return text if text.isidentifier() else f"({text})"

    return re.sub(r"\bn\d+\b", name, rule)


def _place(piece: Piece) -> str:
    """Where a piece runs: the path of its module, or what the block is called."""
    for node in piece.nodes:
        path, _ = (node.meta.get("nn_module_stack") or {}).get(piece.label[0], ("", None))
        if path:
            return path
    return piece.name or "between"


def _trace_piece(one: PieceCall, needs: Sequence[bool]) -> tuple[Traced, bool]:
    """A piece as a joint, and whether an empty tensor must tell it open sizes of its own."""
    shapes = Open(one.operands.hints)
    inputs: list[Leaf] = []
    arguments: list[Argument] = []
    primals: list[Tensor] = []
    read: set[Size] = set()

    def add(name: str, value: Tensor) -> None:
        primals.append(value)
        arguments.append(Argument(name, describe_tensor(name, value, shapes)))
        read.update(arguments[-1].tensor.sizes)  # pyright: ignore[reportOptionalMemberAccess]

    given = one.operands.rebuild(shapes, needs)
    for node, value in zip(one.piece.inputs, given, strict=True):
        if isinstance(value, SymInt):
            inputs.append(Leaf("size", node.name, value=shapes.text(value)))
            continue
        inputs.append(Leaf("argument", node.name, len(arguments)))
        if isinstance(value, Tensor):
            add(node.name, value)
        else:
            arguments.append(Argument(node.name, None, value))
    carries = not read.issuperset(shapes.symbols)
    if carries:
        device = next((x.device for x in primals), None)
        with shapes.mode:
            add("sizes", torch.empty([*shapes.symbols.values(), 0], device=device))
    graph = one.write()
    sources = [*one.piece.inputs, *one.piece.nodes]
    for node, source in zip(graph.graph.nodes, sources, strict=False):
        node.meta |= {
            k: source.meta[k] for k in ("stack_trace", "nn_module_stack") if k in source.meta
        }
    outputs = one.piece.outputs
    captured = Captured(
        name=one.piece.name or "glue", graph=graph, inputs=tuple(inputs),
        leaves=tuple(Leaf("output", index=i) for i in range(len(outputs))),
        tree=Tree("tuple", (Tree(),) * len(outputs)), open=one.operands.hints,
        grad=torch.is_grad_enabled(), autocast=torch_private.autocast_now(),
    )  # fmt: skip
    names = tuple(a.name for a in arguments)
    return trace(Call(
        captured=captured, held=(), tensors=(), arguments=tuple(arguments), names=names,
        positional=names, defaults={}, tree=Tree("tuple", (Tree(),) * len(names)), open=shapes,
        primals=tuple(primals),
    ), ambient={}), carries  # fmt: skip


def _sign(
    call: Call, stitching: Stitching, number: Mapping[fx.Node, int], rules: tuple[str, ...]
) -> tuple[Signature, tuple[int, ...]]:
    """The signature of the whole, and the values that its results are."""
    captured = call.captured
    (end,) = captured.graph.graph.find_nodes(op="output")
    nodes: Any = end.args[0]
    results: dict[int, Any] = {}

    def note(node: fx.Node) -> int:
        results.setdefault(number[node], stitching.values[node])
        return [*results].index(number[node])

    at = call.look_up(range(len(call.primals)), nodes)

    def output(leaf: Leaf) -> Output:
        value = at(leaf)
        tensor = leaf.kind == "argument" and call.arguments[leaf.index].tensor is not None
        if tensor or leaf.kind == "held":
            return Output("primal", value, (), True)
        if leaf.kind == "output":
            value = stitching.values[nodes[leaf.index]]
            if isinstance(value, Tensor):
                return Output("result", note(nodes[leaf.index]), (), True)
            if isinstance(value, SymInt):
                return Output("size", value=str(call.open.text(value)))
        return Output("value", value=value)

    outputs = tuple(map(output, captured.leaves))
    mutated = tuple((at(Leaf("held", n)), note(nodes[i])) for n, i, _ in captured.written)
    values = [describe_tensor(f"result{i}", x, call.open) for i, x in enumerate(results.values())]
    signature = call.sign(
        outputs=outputs, results=tuple(values), mutated=mutated, constraints=rules,
        ambient=find_ambient(call), causes=captured.causes,
    )  # fmt: skip
    return signature, tuple(results)


def _end_values(calls: Sequence[UnitCall], kept: set[int]) -> tuple[UnitCall, ...]:
    """The calls, each with the values that nobody reads after it and that are not kept."""
    seen = set(kept)
    ended: list[UnitCall] = []
    for call in reversed(calls):
        ends = tuple(dict.fromkeys(i for i in (*call.reads, *call.gives) if i not in seen))
        seen.update(ends)
        ended.append(msgspec.structs.replace(call, ends=ends))
    return tuple(reversed(ended))
