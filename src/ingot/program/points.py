"""Operations that couple points: sums over the batch, and what makes adjoints fit it.

Points are independent otherwise, so that programs are cut there; no solve holds them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from ingot.errors import IngotError, Problem, Span
from ingot.program.builder import Builder, Node, Slopes, Space, sort_lines
from ingot.program.operations import Bars, Known, Nodes, Operation, Tangent, operation
from ingot.types.batches import (
    EVERY_POINT,
    Dims,
    Level,
    PointRule,
    apply_rule,
    join_dims,
    reduce_dims,
    refuse_reduction,
    remove_axes,
)

__all__ = [
    "Reduction", "Sources", "Transposing", "find_operands", "find_reduced", "find_rule",
    "find_sources",
]  # fmt: skip


class Reduction(NamedTuple):
    """Over which axis of the batch, and whether the sum is divided by its entries."""

    dim: int
    is_mean: bool
    name: str
    span: Span | None

    @property
    def digest(self) -> tuple[int, bool]:
        """What tells reductions apart."""
        return self.dim, self.is_mean


def _describe(reduction: Reduction) -> tuple[str, Span | None]:
    what = "mean" if reduction.is_mean else "sum"
    return f"[{reduction.name}] is a {what} over points", reduction.span


class _Match(NamedTuple):
    """What makes an adjoint fit a batch: the rule, and the axis and model of the sum it is of."""

    rule: PointRule
    reduction: Reduction

    @property
    def digest(self) -> tuple[str, int]:
        """What tells matches apart."""
        return self.rule, self.reduction.dim


class _OfPoints(Operation):
    """An operation on the batch of values; its rule says what is done with points."""

    is_whole = couples_points = True

    def push(self, d: Slopes, node: Node, known: Known, columns: Nodes) -> Tangent:
        def apply(t: Node) -> Node:
            return d.builder.node(node.op, (t, *node.args[1:]), node.attr, t.axes)

        return {key: apply(t) for key, t in known.get(node.args[0].id, {}).items()}

    def unroll(self, to: Any, node: Node, entry: tuple[int, ...]) -> NoReturn:
        raise IngotError([self.refuse(node, "generated C++")])

    def evaluate(self, on: Any, space: Space, node: Node, args: Sequence[Any]) -> Any:
        rule, dim = find_rule(node)
        batch, reduced = on.call.batch, on.call.reduced
        dims, like = (reduced[n.id] for n in (node.args[0], node.args[-1]))
        x = args[0]
        left = () if dims is None else remove_axes(batch, dims)
        rest = x.shape[:-1]
        found = apply_rule(rule, dim, x.movedim(-1, 0).reshape((*left, *rest)), dims, like, batch)
        return found.reshape((-1, *rest)).movedim(0, -1)

    def refuse(self, node: Node, what: str) -> Problem:
        """The problem of what runs points apart."""
        reduction = _find_reduction(node)
        fix = "choose --backend kernel, which is cut there"
        return refuse_reduction(
            _describe(reduction), f"and {what} runs points apart", fix
        ).problems[0]

    def refuse_points(self, node: Node, why: str) -> IngotError:
        """The error where something is asked of every point by itself."""
        fix = "take the sum outside, of what the model gives; tangents and adjoints pass it"
        return refuse_reduction(_describe(_find_reduction(node)), why, fix)


class _BatchSum(_OfPoints):
    """The sum or mean over an axis of the batch."""

    name = "batch_sum"
    arity = 1

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        rule = "spread mean" if node.attr.is_mean else "spread sum"
        return [(node.args[0], _match(d.builder, rule, bar, node.args[0], node.attr))]

    def reduce(self, node: Node, dims: Mapping[int, Dims | None], batch: Sequence[int]) -> Dims:
        """One axis more is gone."""
        held = dims[node.args[0].id] or ()
        return reduce_dims(held, node.attr.dim, batch, _describe(node.attr))

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        what = "mean" if node.attr.is_mean else "sum"
        return f"{what}({args[0]} over axis {node.attr.dim} of the batch)"


class _BatchMatch(_OfPoints):
    """An adjoint made to fit the batch of the second operand, of which nothing else is read."""

    name = "batch_match"
    arity = 2

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        raise self.refuse_points(node, "whose adjoint is differentiated again")

    def reduce(self, node: Node, dims: Mapping[int, Dims | None], batch: Sequence[int]) -> Dims:
        """Those of the value whose adjoint it is."""
        return dims[node.args[1].id] or ()

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        return f"{node.attr.rule}({args[0]} to the points of {args[1]})"


def _match(b: Builder, rule: PointRule, x: Node, like: Node, reduction: Reduction) -> Node:
    return (
        x if like.is_number else b.node("batch_match", (x, like), _Match(rule, reduction), x.axes)
    )


def _find_reduction(node: Node) -> Reduction:
    return node.attr.reduction if isinstance(node.attr, _Match) else node.attr


def find_rule(node: Node) -> tuple[PointRule, int]:
    """What a line does with points, and along which axis of the batch."""
    if isinstance(node.attr, _Match):
        return node.attr.rule, node.attr.reduction.dim
    return "mean" if node.attr.is_mean else "sum", node.attr.dim


def find_operands(node: Node) -> tuple[Node, ...]:
    """The lines whose numbers a line reads; of a match, the first."""
    return node.args[:1] if node.op == "batch_match" else node.args


def find_reduced(
    lines: Sequence[Node], given: Mapping[int, Dims | None], batch: Sequence[int]
) -> dict[int, Dims | None]:
    """Of each line the axes of the batch that it has lost; None where it has no batch."""
    found: dict[int, Dims | None] = dict(given)
    for node in lines:
        rule: Any = operation(node.op)
        if rule.couples_points:
            found[node.id] = rule.reduce(node, found, batch)
        else:
            several = (found[a.id] for a in node.args)
            found[node.id] = join_dims(several, batch, lambda node=node: _describe_first(node))
    return found


def _describe_first(node: Node) -> tuple[str, Span | None]:
    lines = sort_lines([node])
    return _describe(next(_find_reduction(n) for n in lines if operation(n.op).couples_points))


@dataclass(frozen=True, slots=True)
class Sources:
    """What decides the batch of every line: the inputs it depends on, and the sums between.

    of: by line, the names of inputs and of levels; levels: those sums.
    """

    of: Mapping[int, frozenset[str]]
    levels: Mapping[str, Level]

    def key(self, node: Node) -> frozenset[str]:
        """The levels whose values a line meets, inputs being one of their own."""
        return frozenset(n if n in self.levels else EVERY_POINT for n in self.of[node.id])


def find_sources(lines: Iterable[Node], names: Mapping[int, str]) -> Sources:
    """Those of lines in order, given the names of inputs."""
    of: dict[int, frozenset[str]] = {i: frozenset([n]) for i, n in names.items()}
    levels: dict[str, Level] = {}
    known: dict[tuple[frozenset[str], int], str] = {}
    for node in lines:
        rule = operation(node.op)
        if node.id in of:
            continue
        if rule.is_placeholder:
            of[node.id] = frozenset([f"line {node.id}"])
        elif node.op == "batch_match":
            like = of[node.args[1].id]
            of[node.id] = like if like & levels.keys() else frozenset([EVERY_POINT])
        elif rule.couples_points:
            held = of[node.args[0].id]
            if not held & levels.keys():
                # the sum has lost this axis alone, whatever inputs it is of
                held = frozenset([EVERY_POINT])
            name = known.setdefault((held, node.attr.dim), f"level {len(known) + 1}")
            levels[name] = Level(tuple(sorted(held)), node.attr.dim, _describe(node.attr)[0])
            of[node.id] = frozenset([name])
        else:
            of[node.id] = frozenset().union(*(of[a.id] for a in node.args))
    return Sources(of, levels)


class Transposing:
    """Makes adjoints fit the batches of what they belong to, where lines couple points."""

    def __init__(self, builder: Builder, lines: Sequence[Node], ends: Iterable[int] = ()) -> None:
        self.builder = builder
        sums = [n for n in lines if n.op == "batch_sum"]
        self.reduction = sums[0].attr if sums else None
        names = {i: f"line {i}" for i in ends}
        self.sources = find_sources(lines, names) if sums else Sources({}, {})

    def fit(self, bar: Node, value: Node) -> Node:
        """The given adjoint of a value."""
        if self.reduction is None:
            return bar
        return _match(self.builder, "fit", bar, value, self.reduction)

    def collect(self, term: Any, arg: Node, node: Node) -> Any:
        """What the adjoint of a line adds to that of an operand, which may have fewer points."""
        of, levels = self.sources.of, self.sources.levels
        if self.reduction is None or not isinstance(term, Node) or term.is_number:
            return term
        if operation(node.op).couples_points or of[arg.id] == of[node.id]:
            return term
        if not of[node.id] & levels.keys():
            return term
        return _match(self.builder, "collect", term, arg, self.reduction)
