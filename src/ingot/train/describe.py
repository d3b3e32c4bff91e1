"""Halves and archives -> Shown: graphs, Inductor's passes and fusion, constants, code, as rows and
text, with the user's line at every node.
"""

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import PurePath
from typing import Any

import msgspec
from torch import Tensor
from torch.fx import GraphModule, Node

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.graphs.spans import find_span
from ingot.graphs.torch_private import (
    Lowering,
    OpOverload,
    Scheduled,
    hint_of,
    watch_lowering,
)
from ingot.train.compile import compile_archive, compile_half
from ingot.train.cut import constants_of
from ingot.train.partitioner import Halves
from ingot.train.report import described

__all__ = [
    "STAGES",
    "Section",
    "Shown",
    "describe",
    "describe_code",
    "describe_graph",
    "line_of",
    "write_graph",
]

MOST_KEPT = 1_000_000  # characters; the archive of a half has some two million bytes


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A graph, or a file, at a stage: its counts, a row for each thing in it, and the text."""

    name: str
    counts: dict[str, int] = {}
    digest: str = ""
    rows: tuple[dict[str, Any], ...] = ()
    text: str

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        return f"# {self.name}{f': {counts}' if counts else ''}\n{self.text}".rstrip("\n")


class Shown(msgspec.Struct, frozen=True):
    """What a function, a module or a package is at a stage."""

    name: str
    stage: str
    sections: tuple[Section, ...]

    def json(self) -> str:
        """The same as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.sections))


def describe(halves: Halves, stage: str) -> Shown:
    """What Ingot makes of a function at one of `STAGES`."""
    if stage not in STAGES:
        fix = did_you_mean(stage, STAGES) or f"the stages are {', '.join(STAGES)}"
        raise _problem("stage-target", f"torch graphs have no stage '{stage}'", fix)
    if halves.backward is None and stage in ("joint", "backward"):
        told = f"'{halves.signature.name}' has no {stage} graph: nothing in it needs a gradient"
        fix = "give the example, or a parameter, requires_grad=True"
        raise _problem("stage-empty", told, fix)
    return Shown(halves.signature.name, stage, tuple(STAGES[stage](halves)))


def write_graph(halves: Halves, half: str) -> str:
    """The graph of a half as a package keeps it: where its lines are in the source, not the lines.

    Longer ones are left out: see MOST_KEPT.
    """
    (section,) = STAGES[half](halves)
    head, _, _ = str(section).partition("\n")
    text = f"{head}\n{_text(section.rows, code=False)}\n"
    return text if len(text) <= MOST_KEPT else f"{head}\nit has {len(text)} characters: not kept\n"


def line_of(node: Node) -> dict[str, Any]:
    """The line of the user's source that a node comes from: the innermost that is not torch's."""
    span = find_span(node)
    if span is None:
        return {}
    return {"file": span.file, "line": span.line, "function": span.block, "code": span.text}


# graphs


def _joint(halves: Halves) -> Iterator[Section]:
    gradients = len(halves.signature.gradients)
    counts = {**_kept(halves), "gradients": gradients}
    yield _graph("joint", halves.traced.graph, counts, halves)


def _forward(halves: Halves) -> Iterator[Section]:
    yield _graph("forward", halves.forward, _kept(halves), halves)


def _backward(halves: Halves) -> Iterator[Section]:
    assert halves.backward is not None
    yield _graph("backward", halves.backward, _kept(halves), halves)


def _names(halves: Halves) -> dict[str, str]:
    """What the user calls the primals, by the names of their nodes."""
    signature = halves.signature
    nodes = halves.traced.graph.graph.find_nodes(op="placeholder")
    known = [h.names[0] for h in signature.held] + [t.name for t in signature.tensors]
    return {node.name: name for node, name in zip(nodes, known, strict=False)}


def _kept(halves: Halves) -> dict[str, int]:
    """Bytes kept between forward and backward at the sizes of the example."""
    symbols = halves.traced.call.open.symbols
    row = described(halves, {name: hint_of(symbol) for name, symbol in symbols.items()})
    between = {"bytes kept between": row.saved, "bytes of inputs and results held": row.held}
    return between if halves.backward is not None else {}


def _graph(name: str, graph: GraphModule, counts: Mapping[str, int], halves: Halves) -> Section:
    return describe_graph(name, graph, counts, _names(halves), halves.traced.call.open.text)


def describe_graph(
    name: str, graph: GraphModule, counts: Mapping[str, int] = {}, names: Mapping[str, str] = {},
    text: Callable[[Any], Any] = str,
) -> Section:  # fmt: skip
    """A graph node by node; `text` writes a size."""
    lines = _lines(graph)
    rows = tuple({**_row(n, names, text), **lines.get(n, {})} for n in graph.graph.nodes)
    operations = sum(node.op == "call_function" for node in graph.graph.nodes)
    return Section(
        name=name, counts={"operations": operations, **counts},
        digest=sha256(graph.code.encode()).hexdigest(), rows=rows, text=_text(rows),
    )  # fmt: skip


def _row(node: Node, names: Mapping[str, str], text: Callable[[Any], Any]) -> dict[str, Any]:
    value = node.meta.get("val")
    tensor = _shape(value, text) if isinstance(value, Tensor) else ""
    given = [*map(str, node.args), *(f"{k}={v}" for k, v in node.kwargs.items())]
    if node.op == "placeholder":
        given = [names[node.name]] if node.name in names else []
    named: Any = node.target
    if not isinstance(named, OpOverload | str):
        named = getattr(named, "__name__", named)
    row = {"name": node.name, "kind": node.op, "operation": str(named), "arguments": given}
    return {**row, "tensor": tensor}


def _lines(graph: GraphModule) -> dict[Node, dict[str, Any]]:
    """The line of each operation; a check that Ingot adds is at the line of what it checks."""
    lines = {node: line_of(node) for node in graph.graph.nodes if node.op == "call_function"}
    for node in reversed(lines):
        lines[node] = lines[node] or next((lines[n] for n in node.users if lines.get(n)), {})
    for node in lines:
        near = (lines[n] for n in node.all_input_nodes if lines.get(n))
        lines[node] = lines[node] or next(near, {})
    return lines


def _shape(value: Tensor, text: Callable[[Any], Any]) -> str:
    sizes = ", ".join(str(text(size)) for size in value.shape)
    return f"{str(value.dtype).removeprefix('torch.')}[{sizes}]"


def _text(rows: Iterable[dict[str, Any]], *, code: bool = True) -> str:
    """A line for each node; the source stands above the nodes that come from it."""
    lines, source = [], ""
    for row in rows:
        place = f"{PurePath(row['file']).name}:{row['line']}" if "file" in row else ""
        head = f"# {place} in {row['function']}" if place else ""
        head += f": {row['code']}" if head and code else ""
        if head and head != source:
            lines += ["", head]
            source = head
        given = ", ".join(row["arguments"])
        called = {
            "placeholder": f"given {given}".rstrip(), "get_attr": f"constant {row['operation']}",
            "output": f"gives {given}",
        }.get(row["kind"], f"{row['operation']}({given})")  # fmt: skip
        said = called if row["kind"] == "output" else f"{row['name']} = {called}"
        ends = "  ".join(part for part in (row["tensor"], place) if part)
        lines.append(f"{said}  # {ends}" if ends else said)
    return "\n".join(lines).strip("\n")


# what Inductor does to each half


def _both(halves: Halves) -> Iterator[tuple[str, GraphModule]]:
    yield "forward", halves.forward
    if halves.backward is not None:
        yield "backward", halves.backward


def _lowered(halves: Halves) -> Iterator[tuple[str, GraphModule, Lowering]]:
    """Compile each half as a package does, up to where its loops are fused."""
    for name, graph in _both(halves):
        with watch_lowering() as lowering:
            compile_archive(graph, name, halves.traced.call.open)
        yield name, graph, lowering


def _post_grad(halves: Halves) -> Iterator[Section]:
    for name, graph, lowering in _lowered(halves):
        passes = tuple(_passes(len(graph.graph.nodes), lowering))
        lines = [
            f"{p['subsystem']:20} {p['name']:32} {p['before']} -> {p['after']}" for p in passes
        ]
        yield Section(
            name=f"{name}, passes that changed something", counts={"passes": len(passes)},
            rows=passes, text="\n".join(lines),
        )  # fmt: skip
        assert lowering.graph is not None
        yield _graph(f"{name}, after them", lowering.graph, {}, halves)


def _passes(nodes: int, lowering: Lowering) -> Iterator[dict[str, Any]]:
    """Passes and nodes; where a count moves between two of them, by what Inductor does not name."""
    end = len(lowering.graph.graph.nodes) if lowering.graph is not None else nodes
    for subsystem, name, before, after in [*lowering.passes, ("", "", end, end)]:
        if before != nodes:
            yield {"subsystem": "", "name": "(not named)", "before": nodes, "after": before}
        if name:
            yield {"subsystem": subsystem, "name": name, "before": before, "after": after}
        nodes = after


def _ir(halves: Halves) -> Iterator[Section]:
    for name, _, lowering in _lowered(halves):
        yield _scheduled(name, lowering.before, {"nodes before fusion": len(lowering.before)})


def _fused(halves: Halves) -> Iterator[Section]:
    for name, _, lowering in _lowered(halves):
        counts = {"nodes before fusion": len(lowering.before), "after": len(lowering.after)}
        decisions = tuple(_decisions(lowering))
        yield Section(
            name=f"{name}, decisions", counts=counts, rows=decisions,
            text="\n".join(d["text"] for d in decisions),
        )  # fmt: skip
        yield _scheduled(f"{name}, after fusion", lowering.after, {})


def _decisions(lowering: Lowering) -> Iterator[dict[str, Any]]:
    """Which nodes are one loop now, and why others are not, as far as Inductor says."""
    group = {part: node.name for node in lowering.after for part in node.parts}
    label = {n.name: f"{n.name} ({_operations(n)})" for n in (*lowering.before, *lowering.after)}
    for node in lowering.after:
        if len(node.parts) > 1:
            text = f"fused {', '.join(label[part] for part in node.parts)} into {node.name}"
            yield {"fused": True, "nodes": node.parts, "into": node.name, "text": text}
    told = set()
    for first, second, why in lowering.apart:
        # a name that a later fusion has replaced is that of nodes joined by _
        pair = [group.get(name.split("_")[0], name) for name in (first, second)]
        if pair[0] != pair[1] and (*pair, why) not in told:
            told.add((*pair, why))
            text = f"not fused {label[pair[0]]} with {label[pair[1]]}: {why}"
            yield {"fused": False, "nodes": pair, "why": why, "text": text}


def _operations(node: Scheduled) -> str:
    names = dict.fromkeys(origin.name for origin in node.origins)
    return ", ".join([*names][:4]) + (", ..." if len(names) > 4 else "")


def _scheduled(name: str, nodes: list[Scheduled], counts: dict[str, int]) -> Section:
    rows = []
    for node in nodes:
        places = [line_of(origin) for origin in node.origins]
        lines = dict.fromkeys(f"{PurePath(p['file']).name}:{p['line']}" for p in places if p)
        rows.append({
            "name": node.name, "kind": node.kind, "parts": node.parts, "lines": [*lines],
            "operations": [str(origin.target) for origin in node.origins], "text": node.text,
        })  # fmt: skip
    texts = [f"# {r['name']}: {', '.join(r['lines']) or 'no line'}\n{r['text']}" for r in rows]
    return Section(name=name, counts=counts, rows=tuple(rows), text="\n\n".join(texts))


def _constants(halves: Halves) -> Iterator[Section]:
    """Values of the source that were taken as they are; then the tensors that each graph holds:
    stored by the package, written into the code, or folded.
    """
    captured = halves.traced.call.captured
    taken: list[dict[str, Any]] = [
        {"name": c.name, "value": c.value, "becomes": "fixed"} for c in captured.constants
    ]
    taken += [
        {"name": i.name, "tensor": _shape(i.value, str), "bytes": i.value.nbytes,
         "becomes": "an input"}
        for i in captured.inputs
        if i.kind == "constant"
    ]  # fmt: skip
    yield Section(
        name="source", counts={"constants": len(taken)}, rows=tuple(taken),
        text="\n".join(f"{r['name']} = {r.get('value', r.get('tensor'))}: {r['becomes']}"
                       for r in taken),
    )  # fmt: skip
    for name, graph, lowering in _lowered(halves):
        stored = {origin: own for own, origin in lowering.constants.items()}
        known = constants_of(graph)
        assert lowering.graph is not None
        left = set(map(str, constants_of(lowering.graph)))
        rows = []
        for constant, value in known.items():
            way = "stored" if constant in stored else "inlined" if constant in left else "folded"
            rows.append({"name": constant, "tensor": _shape(value, str), "bytes": value.nbytes,
                         "becomes": way, "origin": "graph"})  # fmt: skip
        rows += [
            {"name": own, "tensor": "", "bytes": 0, "becomes": "stored", "origin": "Inductor"}
            for own, origin in lowering.constants.items()
            if origin not in known
        ]
        rows += [
            {"name": n, "tensor": "", "bytes": 0, "becomes": "split off", "origin": "Inductor"}
            for n in lowering.folded
        ]
        folds = [p for p in lowering.passes if "constant" in p[1]]
        lines = [f"{r['name']} {r['tensor']}, {r['bytes']} bytes: {r['becomes']}" for r in rows]
        lines += [f"{p[1]}: {p[2]} -> {p[3]} nodes" for p in folds]
        lines += [] if lowering.folded else ["none is computed ahead in a graph of its own"]
        yield Section(
            name=name, counts={"constants": len(rows)}, rows=tuple(rows), text="\n".join(lines)
        )


def _code(halves: Halves) -> Iterator[Section]:
    for name, graph in _both(halves):
        half = compile_half(graph, "inductor", name, halves.traced.call.open)
        yield from describe_code(name, half.archive)


def describe_code(name: str, archive: bytes) -> Iterator[Section]:
    """The sources that an archive of Inductor's was compiled from, which it holds."""
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        for file in files.namelist():
            *_, kind, suffix = ("", *PurePath(file).name.split("."))
            if suffix in ("cpp", "cu", "py"):
                text = files.read(file).decode()
                yield Section(
                    name=f"{name}, {kind}.{suffix}", counts={"lines": text.count("\n")},
                    digest=sha256(text.encode()).hexdigest(), text=text.rstrip(),
                )  # fmt: skip


STAGES: dict[str, Callable[[Halves], Iterator[Section]]] = {
    "joint": _joint, "forward": _forward, "backward": _backward, "post-grad": _post_grad,
    "inductor-ir": _ir, "fused": _fused, "constants": _constants, "code": _code,
}  # fmt: skip
"""The stages of a torch function and its gradient, in their order."""


def _problem(code: str, message: str, fix: str) -> IngotError:
    return IngotError([Problem(code, message, None, fix)])
