"""A captured graph -> steps: the calls of blocks, and the pieces between them as graphs."""

import hashlib
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from ingot.errors import IngotError, Problem
from ingot.graphs.torch_private import expression_of, hint_of, pytree
from ingot.regions import operation
from ingot.regions.capture import Call, Captured, Example, bounds
from ingot.regions.plan import Plan, Step, TensorInfo, UnitInfo
from ingot.regions.state import dtype_name
from ingot.regions.structure import tensor_key

__all__ = ["Cutout", "split"]


@dataclass(frozen=True, slots=True)
class Cutout:
    """What is to be compiled, once for all pieces of its key.

    state: tensors like the lifted ones; graph: made when it is needed; hints: usual sizes.
    """

    key: Hashable
    info: UnitInfo
    graph: Callable[[], fx.GraphModule]
    state: tuple[Tensor, ...]
    hints: Mapping[str, int]


def split(
    captured: Captured, example: Example, *, grad: bool, autocast: str, training: bool
) -> tuple[Plan, list[Cutout]]:
    """The plan of a captured module, and its pieces, each once."""
    fixed = captured.sizes.fixed()
    if fixed:
        raise IngotError([_fixed(name, to) for name, to in fixed.items()])
    splitter = _Splitter(captured, grad=grad, autocast=autocast)
    splitter.walk()
    plan = Plan(
        inputs=example.infos,
        constants=example.constants,
        input_tree=pytree.treespec_dumps(example.tree),
        state=captured.infos,
        sizes=example.sizes,
        guards=captured.sizes.guards(),
        units=tuple(p.info for p in splitter.pieces.values()),
        steps=_ended(splitter.steps, splitter.outputs),
        outputs=tuple(splitter.outputs),
        returned=captured.returned,
        output_tree=pytree.treespec_dumps(captured.output_tree),
        autocast=autocast,
        grad=grad,
        training=training,
    )
    return plan, list(splitter.pieces.values())


def _fixed(name: str, to: str) -> Problem:
    return Problem(
        "region-size-fixed", f"the module runs only where {name} is {to}", None,
        f"leave '{name}' out of dynamic=, or read sizes from shapes instead of writing numbers",
    )  # fmt: skip


def _ended(steps: Sequence[Step], outputs: Iterable[int]) -> tuple[Step, ...]:
    """The steps, each with the values that nothing reads after it."""
    later = set(outputs)
    ended = []
    for step in reversed(steps):
        met = {*step.reads, *step.gives}
        ends = tuple(sorted(met - later))
        later |= met
        ended.append(Step(step.unit, step.place, step.state, step.reads, step.gives, ends))
    return tuple(reversed(ended))


class _Splitter:
    """One walk over a captured graph."""

    def __init__(self, captured: Captured, *, grad: bool, autocast: str) -> None:
        self.captured = captured
        self.how = (grad, autocast)
        self.pieces: dict[Hashable, Cutout] = {}
        self.steps: list[Step] = []
        self.outputs: list[int] = []
        nodes = list(captured.graph.graph.nodes)
        given = [n for n in nodes if n.op == "placeholder"]
        count = len(captured.state)
        self.state = {n: i for i, n in enumerate(given[:count])}
        self.index = {id(s.tensor): i for i, s in enumerate(captured.state)}
        self.slots = {n: i for i, n in enumerate(given[count:])}
        self.used = len(self.slots)

    def walk(self) -> None:
        """Cut the graph at the calls of blocks."""
        graph = self.captured.graph.graph
        glue: list[fx.Node] = []
        for node in graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                self.close(glue)
                self.outputs = [self.slot(n, "output") for n in _flat(node.args[0])]
            elif node.op == "call_function" and node.target is operation.region:
                self.close(glue)
                glue = []
                self.call(node, self.captured.calls[node.args[1]])
            elif not _is_item_of_call(node):
                glue.append(node)

    def slot(self, node: fx.Node, where: str) -> int:
        if node in self.state:
            name = self.captured.state[self.state[node]].name
            raise IngotError([Problem(
                "region-output", f"'{name}' itself is an {where} of the module", None,
                "return a copy of it (clone), or read it from the module",
            )])  # fmt: skip
        return self.slots[node]

    def call(self, node: fx.Node, call: Call) -> None:
        """A step for a call of a block."""
        values: list[fx.Node] = list(node.args[0])  # pyright: ignore[reportArgumentType]
        lifted = [self.state[v] for v in values if v in self.state]
        reads = [v for v in values if v not in self.state]
        own = tuple(self.index[id(s.tensor)] for s in call.state)
        order = _order([v in self.state for v in values], len(own))
        state = (*own, *lifted)
        infos, hints = self.infos(reads)
        info = UnitInfo(call.name, "block", len(state), infos, bounds(infos), (), call.outputs)
        tensors = tuple(self.captured.state[i].tensor for i in state)
        key = (call.key, self.how, order, infos, _state_key(tensors))
        run = call.run if order == tuple(range(len(order))) else _ordered(call.run, order)
        graph = lambda: operation.one_call(run, len(order), call.outputs)  # noqa: E731
        items = {n.args[1]: n for n in node.users if n.target is operator.getitem}
        self.step(
            Cutout(key, info, graph, tensors, hints), call.place, state, reads,
            [items.get(i) for i in range(call.outputs)],
        )  # fmt: skip

    def close(self, glue: list[fx.Node]) -> None:
        """A step for the operations since the last call, if anything later needs them."""
        inside = set(glue)
        gives = [n for n in glue if _is_tensor(n) and not n.users.keys() <= inside]
        acts = [n for n in glue if n.is_impure()]
        if not gives and not acts:
            return
        body = _needed([*gives, *acts], inside, self.known)
        outer = _inputs(body)
        lifted = [n for n in outer if n in self.state]
        reads = [n for n in outer if n not in self.state]
        infos, hints = self.infos(reads)
        tensors = tuple(self.captured.state[self.state[n]].tensor for n in lifted)
        module = _cut(self.captured.graph, body, [*lifted, *reads], gives)
        info = UnitInfo("glue", "glue", len(lifted), infos, bounds(infos), (), len(gives))
        key = ("glue", _text(module), self.how, infos, _state_key(tensors))
        names = [n.name for n in gives] or [n.name for n in acts]
        self.step(
            Cutout(key, info, lambda: module, tensors, hints), f"before {names[-1]}",
            [self.state[n] for n in lifted], reads, gives,
        )  # fmt: skip

    def known(self, node: fx.Node) -> bool:
        """Whether a node is a value that steps pass on."""
        return node in self.state or node in self.slots

    def step(
        self, piece: Cutout, place: str, state: Sequence[int], reads: Sequence[fx.Node],
        gives: Sequence[fx.Node | None],
    ) -> None:  # fmt: skip
        self.pieces.setdefault(piece.key, piece)
        unit = list(self.pieces).index(piece.key)
        given = tuple(range(self.used, self.used + len(gives)))
        self.used += len(gives)
        self.slots.update({n: i for n, i in zip(gives, given, strict=True) if n is not None})
        where = tuple(self.slots[n] for n in reads)
        self.steps.append(Step(unit, place, tuple(state), where, given, ()))

    def infos(self, nodes: Sequence[fx.Node]) -> tuple[tuple[TensorInfo, ...], dict[str, int]]:
        """The tensors of a unit; sizes that vary are named in the order in which they are met."""
        names: dict[str, str] = {}
        hints: dict[str, int] = {}
        infos = []
        for i, node in enumerate(nodes):
            value: Tensor = node.meta["val"]
            shape: list[int | str] = []
            for size in value.shape:
                if isinstance(size, int):
                    shape.append(size)
                    continue
                name = names.setdefault(str(expression_of(size)), f"n{len(names)}")
                hints[name] = hint_of(size)
                shape.append(name)
            infos.append(
                TensorInfo(f"x{i}", dtype_name(value.dtype), str(value.device), tuple(shape))
            )
        return tuple(infos), hints


def _order(is_state: Sequence[bool], own: int) -> tuple[int, ...]:
    """Where each argument of a call stands once lifted ones come first."""
    lifted = iter(range(own, own + sum(is_state)))
    others = iter(range(own + sum(is_state), own + len(is_state)))
    return (*range(own), *(next(lifted) if s else next(others) for s in is_state))


def _ordered(run: Callable[..., Any], order: Sequence[int]) -> Callable[..., Any]:
    def call(*flat: Tensor) -> Any:
        return run(*(flat[i] for i in order))

    return call


def _state_key(tensors: Sequence[Tensor]) -> Hashable:
    return tuple((*tensor_key(t), t.requires_grad) for t in tensors)


def _flat(argument: Any) -> list[fx.Node]:
    return list(argument) if isinstance(argument, (list, tuple)) else [argument]


def _is_item_of_call(node: fx.Node) -> bool:
    of = node.args[0] if node.target is operator.getitem else None
    return isinstance(of, fx.Node) and of.target is operation.region


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), Tensor)


def _needed(
    roots: Sequence[fx.Node], inside: set[fx.Node], known: Callable[[fx.Node], bool]
) -> list[fx.Node]:
    """What roots are made of, in order: operations of this piece, and sizes computed in others."""
    found: dict[fx.Node, None] = {}

    def visit(node: fx.Node) -> None:
        if node in found or (known(node) and node not in inside):
            return
        for source in node.all_input_nodes:
            visit(source)
        found[node] = None

    for root in roots:
        visit(root)
    return list(found)


def _inputs(body: Sequence[fx.Node]) -> list[fx.Node]:
    inside = set(body)
    return list(dict.fromkeys(
        source for node in body for source in node.all_input_nodes if source not in inside
    ))  # fmt: skip


def _cut(
    whole: fx.GraphModule, body: Sequence[fx.Node], inputs: Sequence[fx.Node],
    gives: Sequence[fx.Node],
) -> fx.GraphModule:  # fmt: skip
    """A graph of its own."""
    graph = fx.Graph()
    at: dict[fx.Node, fx.Node] = {n: graph.placeholder(f"x{i}") for i, n in enumerate(inputs)}
    root = nn.Module()
    for node in body:
        at[node] = graph.node_copy(node, at.__getitem__)
        if node.op == "get_attr":
            setattr(root, str(node.target), getattr(whole, str(node.target)))
    graph.output(tuple(at[n] for n in gives))
    return fx.GraphModule(root, graph)


def _text(module: fx.GraphModule) -> str:
    """A graph in words that do not depend on the names of its nodes."""
    number = {n: i for i, n in enumerate(module.graph.nodes)}

    def said(argument: object) -> str:
        if isinstance(argument, fx.Node):
            return f"%{number[argument]}"
        if isinstance(argument, (list, tuple)):
            return f"({', '.join(map(said, argument))})"
        return repr(argument)

    lines = []
    for node in module.graph.nodes:
        what = _constant(module, node) if node.op == "get_attr" else str(node.target)
        what = "" if node.op == "placeholder" else what
        options = sorted((k, said(v)) for k, v in node.kwargs.items())
        lines.append(f"{node.op} {what} {said(node.args)} {options}")
    return "\n".join(lines)


def _constant(module: fx.GraphModule, node: fx.Node) -> str:
    value = getattr(module, str(node.target))
    if not isinstance(value, Tensor):
        return f"{node.target} {id(value)}"
    numbers = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return f"{tensor_key(value)} {hashlib.sha256(numbers).hexdigest()}"
