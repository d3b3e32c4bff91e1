"""Call -> Traced: one graph of what it gives, what it changes, and the gradients of both.

The graph writes to nothing, holds no dead lines and draws no numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from ingot.errors import IngotError, Problem, raise_if
from ingot.graphs.capture import find_fix
from ingot.graphs.guards import find_excluded
from ingot.graphs.sizes import find_fixed
from ingot.graphs.spans import find_span, find_span_in, placed
from ingot.graphs.torch_private import (
    base_of,
    follow_gradients,
    merge_equal_lines,
    plain,
    pytree,
    refuses_generator,
    was_written,
    without_autocast,
    wrapped,
)
from ingot.train import functional, random
from ingot.train.ambient import find_ambient
from ingot.train.bounds import guard
from ingot.train.call import Call, describe_tensor
from ingot.train.cut import ahead
from ingot.train.signature import Output, Signature
from ingot.train.views import root, steps

__all__ = ["Traced", "trace"]


@dataclass(frozen=True, slots=True)
class Traced:
    """The joint graph: primals and tangents in, `count` results and then gradients out."""

    call: Call
    signature: Signature
    graph: GraphModule
    count: int

    def __str__(self) -> str:
        return f"{self.signature}\n{self.graph.code.strip()}"


@dataclass(frozen=True, slots=True)
class _Survey:
    """What running forward shows: leaves of the result, which results to return, what changes."""

    outputs: tuple[Output, ...]
    taken: tuple[tuple[int, bool], ...]
    results: tuple[Tensor, ...]
    requires_grad: tuple[bool, ...]
    mutated: tuple[int, ...]


def trace(
    call: Call,
    decompositions: Mapping[Any, Any] | None = None,
    ambient: Mapping[str, str] | None = None,
) -> Traced:
    """Trace forward and backward into one graph and clean it; decompositions go before ours.

    ambient: the defaults that the call depends on, where they are known.
    """
    ambient = find_ambient(call) if ambient is None else dict(ambient)
    with placed(call.captured.place):
        return _trace(call, {**functional.decompositions(), **(decompositions or {})}, ambient)


def _trace(call: Call, table: dict[Any, Any], ambient: dict[str, str]) -> Traced:
    survey = _survey(call)
    graph, wanted = _joint(call, survey, table)
    draws = random.lift(graph, call.open)
    _without_aliases(graph)
    given = _flat_output(graph)
    count = len(survey.results)
    status, indices = guard(graph, call, given[:count])
    told = [] if status is None else [status]
    gradients = {i: g for i, g in zip(wanted, given[count:], strict=True) if g is not None}
    _keep(graph, [*given[:count], *told, *gradients.values()])
    _clean(graph)
    raise_if(find_fixed(call.name, dict.fromkeys(call.open.tied())))
    results = [*zip(survey.results, survey.requires_grad, strict=True)]
    results += [(node.meta["val"], False) for node in told]
    first = count - len(survey.mutated)
    constraints, causes = _constraints(call, graph)
    signature = call.sign(
        outputs=survey.outputs,
        results=tuple(
            describe_tensor(f"result{i}", value, call.open, differ=differ)
            for i, (value, differ) in enumerate(results)
        ),
        mutated=tuple((primal, first + i) for i, primal in enumerate(survey.mutated)),
        draws=draws, gradients=tuple(gradients),
        tangents=_tangents(graph, len(results), survey.requires_grad),
        constraints=constraints, indices=tuple(indices), ambient=ambient, causes=causes,
    )  # fmt: skip
    return Traced(call, signature, graph, len(results))


def _joint(call: Call, survey: _Survey, table: dict[Any, Any]) -> tuple[GraphModule, list[int]]:
    """The graph of results and gradients, and the primals that the gradients are of."""
    differ = survey.requires_grad
    tangents = [call.open.blank_like(x) for x, d in zip(survey.results, differ, strict=True) if d]
    wanted = [i for i, p in enumerate(call.primals) if p.requires_grad and tangents]

    def joint(primals: list[Tensor], tangents: list[Tensor]) -> Any:
        noted = wrapped(primals)
        grads: Sequence[Tensor | None] = ()
        results = _results(call, survey, noted)
        if wanted:
            ends = [r for r, d in zip(results, differ, strict=True) if d]
            grads = _gradients(ends, [noted[i] for i in wanted], wrapped(tangents))
        return [*map(plain, results)], [*map(plain, grads)]

    with _translated(call):
        graph = functional.graph_of(joint, call.open, call.primals, tangents, table=table)
    return graph, wanted


def _results(call: Call, survey: _Survey, noted: list[Tensor]) -> list[Tensor]:
    leaves = call.run(noted)
    results = [_base(leaves[i]) if above else leaves[i] for i, above in survey.taken]
    return [*results, *(noted[i] for i in survey.mutated)]


def _base(leaf: Tensor) -> Tensor:
    base = base_of(leaf)
    assert base is not None
    return base


def _gradients(
    results: list[Tensor], primals: list[Tensor], tangents: list[Tensor]
) -> Sequence[Tensor | None]:
    follow_gradients(results)
    with without_autocast():
        return torch.autograd.grad(results, primals, tangents, allow_unused=True)


def _survey(call: Call) -> _Survey:
    """Run forward once, to know what is a view of what and what is written to."""
    leaves: list[Any] = []
    written: dict[int, bool] = {}

    def forward(primals: list[Tensor]) -> Any:
        noted = wrapped(primals)
        before = [n.grad_fn for n in noted]
        found = call.run(noted)
        raise_if(_differentiated(call, [i for i, n in enumerate(noted) if n.grad_fn != before[i]]))
        leaves.extend(found)
        written.update((i, n.requires_grad) for i, n in enumerate(noted) if was_written(n))
        tensors = [x for x in found if isinstance(x, Tensor)]
        return [plain(x) for x in (*tensors, *(noted[i] for i in written))]

    with _translated(call):
        graph = functional.graph_of(forward, call.open, call.primals, table={})
    nodes = _flat_output(graph)
    raise_if(_value_problems(graph, call))
    return _described(call, graph, nodes, leaves, written)


def _described(
    call: Call, graph: GraphModule, nodes: list[Any], leaves: list[Any], written: dict[int, bool]
) -> _Survey:
    places = {n: i for i, n in enumerate(graph.graph.find_nodes(op="placeholder"))}
    count = len(nodes) - len(written)
    last = {n: p for n, p in zip(nodes[count:], written, strict=True) if n not in places}
    tops: dict[int, Node] = {}
    at = iter(nodes[:count])
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            tops[i] = next(at)
    roots = {i: root(node, stop=last.__contains__) for i, node in tops.items()}
    primal = {**places, **last}
    taken: dict[Node, tuple[int, bool]] = {}
    outputs: list[Output] = []
    for i, leaf in enumerate(leaves):
        if i not in tops:
            size = isinstance(leaf, torch.SymInt)
            value = str(call.open.text(leaf)) if size else leaf
            outputs.append(Output("size" if size else "value", value=value))
            continue
        node, start = tops[i], roots[i]
        path = steps(node, start, call.open)
        if start in primal:
            if path is None:
                raise _aliased(f"output {i} is a view of an input that cannot be made again")
            outputs.append(Output("primal", primal[start], path, leaf.requires_grad))
            continue
        group = [j for j in tops if roots[j] is start]
        chosen = _representative(group, tops, start, leaves)
        if chosen is None or path is None:
            if len(group) > 1:
                raise _aliased(f"outputs {group} share memory in a way that cannot be made again")
            chosen, path = (i, False), ()
        taken.setdefault(start, chosen)
        index = list(taken).index(start)
        outputs.append(Output("result", index, path, leaf.requires_grad))
    results = [_base(leaves[i]) if above else leaves[i] for i, above in taken.values()]
    values = [start.meta["val"] if above else tops[i].meta["val"]
              for start, (i, above) in taken.items()]  # fmt: skip
    values += [node.meta["val"] for node in nodes[count:]]
    differ = [*(r.requires_grad for r in results), *written.values()]
    return _Survey(
        tuple(outputs), tuple(taken.values()), tuple(values), tuple(differ), tuple(written)
    )


def _representative(
    group: list[int], tops: dict[int, Node], start: Node, leaves: list[Any]
) -> tuple[int, bool] | None:
    """The output that is what all of a group are views of, or one whose origin that is."""
    for i in group:
        if tops[i] is start:
            return i, False
    for i in group:
        origin = base_of(leaves[i])
        if origin is not None and tuple(origin.shape) == tuple(start.meta["val"].shape):
            return i, True
    return None


@contextmanager
def _translated(call: Call) -> Iterator[None]:
    """Torch's complaints about a function, as ours."""
    try:
        yield
    except IngotError:
        raise
    except Exception as error:
        if refuses_generator(error):
            raise random.undrawable(f"a number of '{call.name}'", "it has a generator") from error
        text = str(error).split("\n")[0]
        told = f"'{call.name}' cannot be traced: {type(error).__name__}: {text}"
        span = find_span_in(str(error))
        fix = find_fix(str(error), str(error), call.name)
        raise IngotError([Problem("untraceable-function", told, span, fix)]) from error


def _named(call: Call) -> list[str]:
    return [*(h.names[0] for h in call.held), *(a.name for a in call.arguments if a.tensor)]


def _differentiated(call: Call, which: list[int]) -> list[Problem]:
    named = _named(call)
    return [
        Problem("mutated-gradient", f"'{named[i]}' asks for a gradient and is written to", None,
                "write to a clone of it, or under torch.no_grad()")
        for i in which
        if call.primals[i].requires_grad
    ]  # fmt: skip


def _aliased(told: str) -> IngotError:
    return IngotError([Problem("aliased-outputs", told, None, "return clones")])


def _tangents(
    graph: GraphModule, count: int, differ: tuple[bool, ...]
) -> tuple[tuple[int, ...], ...]:
    """The results whose tangents each gradient is computed from."""
    places = [n for n in graph.graph.find_nodes(op="placeholder") if "tangents" in n.name]
    results = [i for i, d in enumerate(differ) if d]
    index = dict(zip(places, results, strict=False))
    given = _flat_output(graph)[count:]
    return tuple(tuple(sorted(index[n] for n in ahead([g]) if n in index)) for g in given)


def _constraints(call: Call, graph: GraphModule) -> tuple[tuple[str, ...], dict[str, str]]:
    """What Python, and torch below it, have assumed of the open sizes, and the causes."""
    known = tuple(dict.fromkeys([*call.captured.guards, *call.open.constraints()]))
    rules, causes = find_excluded(graph, "val", call.open, known)
    return rules, call.captured.causes | causes


def _flat_output(graph: GraphModule) -> list[Any]:
    return pytree.tree_leaves(graph.graph.output_node().args[0])


def _keep(graph: GraphModule, outputs: list[Any]) -> None:
    """Give exactly these; what is itself an input, or twice given, is copied."""
    end = graph.graph.output_node()
    seen: set[Node] = set()
    kept = []
    for node in outputs:
        if node in seen or root(node).op in ("placeholder", "get_attr"):
            with graph.graph.inserting_before(end):
                copy = graph.graph.call_function(torch.ops.aten.clone.default, (node,))
            copy.meta["val"] = node.meta["val"]
            node = copy
        seen.add(node)
        kept.append(node)
    end.args = (tuple(kept),)


def _without_aliases(graph: GraphModule) -> None:
    """Drop what only matters to autograd, which is done."""
    for node in list(graph.graph.nodes):
        if str(node.target) in ("aten.alias.default", "aten.detach.default"):
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)


def _clean(graph: GraphModule) -> None:
    graph.graph.eliminate_dead_code()
    graph.graph = merge_equal_lines(graph.graph)
    graph.recompile()


def _value_problems(graph: GraphModule, call: Call) -> list[Problem]:
    """Sizes and numbers that are known only once a graph runs."""
    for node in graph.graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            parts = value.shape if isinstance(value, Tensor) else (value,)
            if not all(call.open.known(part) for part in parts):
                told = f"'{call.name}' computes {node.target}, whose result depends on values"
                fix = "use torch.where and masks; sizes and Python numbers cannot come from tensors"
                return [Problem("untraceable-function", told, find_span(node), fix)]
    return []
