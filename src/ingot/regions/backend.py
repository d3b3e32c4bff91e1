"""The backend that torch.compile is given: cut Dynamo's graph, compile what is new, stitch."""

import operator
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, fx, nn

from ingot.graphs import torch_private
from ingot.regions.cut import PASSED, Piece, cut, graph_of, merge_dear, refuse_cut
from ingot.regions.mark import Marks
from ingot.regions.report import Report
from ingot.regions.units import Compiler, Operands, Unit, find_unit, text_of

__all__ = ["Backend", "PieceCall", "Stitching", "join_needs"]

MIN_OPERATIONS = 2
"""Fewer operations than these between blocks run as they are: calling a unit costs as much."""


class Backend:
    """Compiles each distinct piece of the graphs that Dynamo writes of a module once."""

    def __init__(self, module: nn.Module, marks: Marks, compiler: Compiler, report: Report) -> None:
        self.module, self.marks, self.compiler, self.report = module, marks, compiler, report

    def __call__(self, module: fx.GraphModule, example: Sequence[Any]) -> Callable[..., Any]:
        """What runs a graph; it is called with the graph's inputs."""
        begun = time.perf_counter()
        self.report.note_break(torch_private.break_of(module))
        # what is saved while a graph is traced is none of a checkpoint's around the call
        with torch_private.without_saved_hooks():
            found = self._stitch(module, example)
            if isinstance(found, str):
                self.report.note_whole(found)
                found = self.compiler(module, list(example))
        self.report.seconds += time.perf_counter() - begun
        return found

    def _stitch(self, module: fx.GraphModule, example: Sequence[Any]) -> Callable[..., Any] | str:
        """What runs the graph piece by piece, or why it must be compiled whole."""
        why = refuse_cut(module.graph)
        if why is not None:
            return why
        inputs = torch_private.fake_inputs(example, module.graph.find_nodes(op="placeholder"))
        if inputs is None:
            return "an input is no plain tensor, or shares memory with another that autograd knows"
        parts = merge_dear([*cut(module, self.marks.find(self.module))])
        if not any(isinstance(part, Piece) and part.name for part in parts):
            return "it holds no block"
        return Stitching(module, parts, inputs).run(self.compiler, self.report)


@dataclass(slots=True)
class PieceCall:
    """A piece in the graph that is stitched, and what it is given there.

    text: what it does, as a key; write: gives it as a graph of its own.
    free: whether its unit may compute gradients of more than is asked for: all results have one.
    """

    piece: Piece
    node: fx.Node
    text: Hashable
    write: Callable[[], fx.GraphModule]
    operands: Operands
    modes: torch_private.Modes
    free: bool


class Stitching:
    """One walk over the parts of a graph, on tensors without numbers and under its own modes.

    least: how many operations between blocks are worth a unit; with 0 all are made units.
    """

    def __init__(
        self, module: fx.GraphModule, parts: Sequence[Piece | fx.Node], inputs: Sequence[Any],
        least: int = MIN_OPERATIONS,
    ) -> None:  # fmt: skip
        self.module, self.parts, self.least = module, parts, least
        self.graph = fx.Graph()
        self.at: dict[fx.Node, fx.Node] = {}
        self.interpreter = fx.Interpreter(module, garbage_collect_values=False)
        self.values = self.interpreter.env
        self.calls: list[PieceCall] = []
        self.known: dict[Hashable, list[Any]] = {}
        for node, value in zip(module.graph.find_nodes(op="placeholder"), inputs, strict=True):
            self.values[node] = value
            self.at[node] = self.graph.node_copy(node)

    def walk(self) -> str | None:
        """Follow all parts; why they cannot be stitched, if so."""
        why: str | None = None
        with torch_private.Modes.now().entered():
            for part in self.parts:
                switches = isinstance(part, fx.Node) and torch_private.is_mode_switch(part.target)
                if why is None or switches:  # a mode that was entered must be left
                    stays = isinstance(part, fx.Node)
                    why = (self._stay([part]) if stays else self._add(part)) or why
        return why

    def run(self, compiler: Compiler, report: Report) -> Callable[..., Any] | str:
        """The stitched graph, or why there is none."""
        why = self.walk()
        if why is not None:
            return why
        for call, needs in join_needs(self.calls):
            with call.modes.entered():
                unit, found = find_unit(call.write, call.text, call.operands, needs, compiler)
                report.note_unit(call.piece, unit, found=found)
            call.node.target = _named(unit, call.piece)
        (end,) = self.module.graph.find_nodes(op="output")
        self.graph.node_copy(end, self.at.__getitem__)
        torch_private.write_checkpoints(self.graph)
        run = fx.GraphModule(self.module, self.graph, "Stitched").forward
        switches = any(torch_private.is_mode_switch(node.target) for node in self.graph.nodes)
        return _left_on_error(run) if switches else run

    def _evaluate(self, nodes: Iterable[fx.Node]) -> str | None:
        """Run nodes on fake tensors; why that fails, if it does."""
        try:
            with torch_private.traced_mode() as mode:
                for node in nodes:
                    if node.target == "item":  # a number of the caller's that Dynamo leaves open
                        self.values[node] = node.meta["example_value"]
                        continue
                    found = self.interpreter.run_node(node)
                    constant = node.op == "get_attr" and isinstance(found, Tensor)
                    self.values[node] = mode.from_tensor(found) if constant else found
        except Exception as error:  # whatever an operation raises
            told = str(error).strip().splitlines() or [type(error).__name__]
            return f"it cannot be run without numbers: {told[0]}"
        return None

    def _stay(self, nodes: Sequence[fx.Node]) -> str | None:
        """Let nodes run as they are."""
        why = self._evaluate(nodes)
        if why is None:
            for node in nodes:
                self.at[node] = self.graph.node_copy(node, self.at.__getitem__)
        return why

    def _add(self, piece: Piece) -> str | None:
        """Put a call of the piece into the stitched graph, or tell why it cannot be."""
        sources, results, modes = piece.inputs, piece.outputs, torch_private.Modes.now()
        given = [self.values[node] for node in sources]
        few = len(piece.nodes) < self.least
        plain = all(isinstance(x, PASSED) for x in given)
        tensors = [x for x in given if isinstance(x, Tensor)]
        if (not piece.name and (few or not plain)) or not (tensors or self.least == 0):
            return self._stay(piece.nodes)
        # an inference tensor counts no writes: it may have been written
        versions = [None if x.is_inference() else x._version for x in tensors]
        operands = Operands(given)
        place = {node: i for i, node in enumerate(piece.nodes)}
        text = text_of(self.module, piece.nodes, sources), *(place[node] for node in results)
        alike = text, operands.key, operands.needs, modes
        if alike in self.known:  # it writes to nothing, and what it gives is its own
            self.values.update(zip(piece.nodes, self.known[alike], strict=True))
            with torch_private.traced_mode():
                self.values |= {n: torch_private.fake_like(self.values[n]) for n in results}
        elif why := self._evaluate(piece.nodes):
            return why
        pairs = zip(tensors, versions, strict=True)
        written = [x for x, version in pairs if version is None or x._version != version]
        if len(written) > len({torch_private.memory_of(x) for x in written}):
            return "a block writes to memory that it is given under two names"
        gives = [self.values[node] for node in results]
        if not plain or not all(isinstance(x, PASSED) for x in gives):
            return "a block is given, or gives, what is neither a tensor nor a number"
        if not written and torch_private.is_apart(gives, given):
            self.known[alike] = [self.values[node] for node in piece.nodes]
        node = self.graph.call_function(_named, tuple(self.at[n] for n in sources))
        free = not written and all(x.requires_grad for x in gives if isinstance(x, Tensor))
        write = partial(graph_of, piece, self.module)
        self.calls.append(PieceCall(piece, node, text, write, operands, modes, free))
        for i, result in enumerate(results):
            self.at[result] = self.graph.call_function(operator.getitem, (node, i))
        return None


def join_needs(calls: Sequence[PieceCall]) -> Iterator[tuple[PieceCall, tuple[bool, ...]]]:
    """Of which operands each call's unit computes gradients: of more, where another call does.

    So the first block of a row, whose input is data, shares the unit of the others.
    """
    keys = [(c.text, c.operands.key, c.modes) for c in calls]
    known: dict[Hashable, set[tuple[bool, ...]]] = {}
    for call, key in zip(calls, keys, strict=True):
        known.setdefault(key, set()).add(call.operands.needs)
    for call, key in zip(calls, keys, strict=True):
        needs = call.operands.needs
        wider = [o for o in known[key] if all(map(operator.ge, o, needs))]
        yield call, max(wider, key=sum) if call.free else needs


def _left_on_error(run: Callable[..., Any]) -> Callable[..., Any]:
    """A graph whose modes are left where it raises, as a with statement leaves them."""

    def call(*values: Any) -> Any:
        before = torch_private.Modes.now()
        try:
            return run(*values)
        except BaseException:
            before.restore()
            raise

    return call


def _named(unit: Unit, piece: Piece) -> Callable[..., Any]:
    """The unit as a function whose name tells what it is in the code of the stitched graph."""

    def call(*values: Any, run: Callable[..., Any] = unit.run) -> Any:
        return run(*values)

    call.__name__ = call.__qualname__ = f"run_{piece.name or 'glue'}".replace(".", "_")
    return call
