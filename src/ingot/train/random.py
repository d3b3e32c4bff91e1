"""Random numbers become inputs of a graph, drawn anew by torch before each call.

So they are fresh, the same as eager's for the same seed, and the same in forward and backward.
"""

from collections.abc import Mapping

import msgspec
import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from ingot.errors import IngotError, Problem, Span
from ingot.graphs.layout import Order, order_of
from ingot.graphs.sizes import Open
from ingot.graphs.spans import find_span
from ingot.graphs.torch_private import schema_of
from ingot.train.call import blank_of, describe_tensor
from ingot.train.signature import Draw
from ingot.train.views import decoded, encoded, operation, root

__all__ = ["DRAWS", "drawn", "lift", "undrawable"]

# of the tensor they are given, these read the shape only
LIKE = (
    "bernoulli.p", "rand_like.default", "randn_like.default", "randint_like.default",
    "randint_like.low_dtype", "uniform.default", "normal_functional.default",
    "exponential.default", "geometric.default", "log_normal.default", "cauchy.default",
)  # fmt: skip
NEW = (
    "rand.default", "randn.default", "randint.default", "randint.low", "randperm.default",
    "normal.float_float",
)  # fmt: skip
IN_PLACE = "aten.bernoulli.p"
"""What torch writes for dropout's `bernoulli_` once there are no writes."""

DRAWS = frozenset(f"aten.{name}" for name in (*LIKE, *NEW))


def lift(graph: GraphModule, shapes: Open) -> tuple[Draw, ...]:
    """Replace each random operation of a graph by a placeholder; what to draw for them."""
    found = []
    first = next(n for n in graph.graph.nodes if n.op != "placeholder" or "tangents" in n.name)
    for node in list(graph.graph.nodes):
        tags = getattr(node.target, "tags", ())
        if node.op != "call_function" or torch.Tag.nondeterministic_seeded not in tags:
            continue
        if _sure(node):
            continue
        draw = _draw(node, shapes)
        with graph.graph.inserting_before(first):
            place = graph.graph.placeholder(f"primals_random_{len(found) + 1}")
        value: Tensor = node.meta["val"]
        order = draw.like.order if draw.operation == IN_PLACE else None
        place.meta["val"] = shapes.blank_like(value, order)
        node.replace_all_uses_with(place)
        graph.graph.erase_node(node)
        found.append(draw)
    graph.recompile()
    return tuple(found)


def _sure(node: Node) -> bool:
    """Whether an operation that may drop values drops none here."""
    target = node.target
    for place, argument in enumerate(schema_of(target).arguments):
        if argument.name == "dropout_p":
            given = [*node.args[place : place + 1], node.kwargs.get("dropout_p", 0.0)][0]
            return isinstance(given, float) and given == 0
    return False


def _draw(node: Node, shapes: Open) -> Draw:
    name = str(node.target)
    try:
        if name not in DRAWS:
            raise TypeError("the numbers depend on values")
        takes_like = name.removeprefix("aten.") in LIKE
        source = node.args[0] if takes_like else node
        assert isinstance(source, Node)
        like = describe_tensor(name, source.meta["val"], shapes, differ=False)
        return Draw(
            name, msgspec.structs.replace(like, order=_order(node, source)),
            tuple(encoded(a, shapes) for a in node.args[int(takes_like) :]),
            {key: encoded(a, shapes) for key, a in node.kwargs.items()},
            takes_like,
        )  # fmt: skip
    except TypeError as error:
        raise undrawable(name, str(error), find_span(node)) from None


def _order(node: Node, source: Node) -> Order:
    """How what is drawn lies; a copy drawn by its probability alone is row-major in torch."""
    if str(node.target) == IN_PLACE and ".empty" not in str(root(source).target):
        return ()
    return order_of(source.meta["val"])


def undrawable(name: str, why: str, span: Span | None = None) -> IngotError:
    """Refuse random numbers that cannot be inputs of a graph."""
    return IngotError([Problem(
        "random-operation", f"{name} cannot be drawn outside of a graph: {why}", span,
        "draw it with torch.rand, randn or bernoulli of a fixed probability, and no generator",
    )])  # fmt: skip


def drawn(draw: Draw, sizes: Mapping[str, int]) -> Tensor:
    """Fresh numbers for a call."""
    arguments = [decoded(a, sizes) for a in draw.arguments]
    if draw.takes_like:
        made = blank_of(draw.like, sizes)
        if draw.operation == IN_PLACE:
            return made.bernoulli_(*arguments)
        arguments.insert(0, made)
    keywords = {key: decoded(a, sizes) for key, a in draw.keywords.items()}
    return operation(draw.operation)(*arguments, **keywords)
