"""Halves and archives -> Shown: graphs, Inductor's passes and fusion, constants, code, as rows and
text, with the user's line at every node.
"""

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from operator import itemgetter
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
    watch_lowering,
)
from ingot.train.compile import compile_archive, compile_half
from ingot.train.cut import constants_of, count_operations
from ingot.train.partitioner import Halves
from ingot.train.report import described

__all__ = [
    "STAGES", "Section", "Shown", "describe", "describe_code", "describe_graph", "line_of",
    "write_graph",
]  # fmt: skip

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
        told = f"torch graphs have no stage '{stage}'"
        raise IngotError([Problem("stage-target", told, None, fix)])
    if halves.backward is None and stage in ("joint", "backward"):
        told = f"'{halves.signature.name}' has no {stage} graph: nothing in it needs a gradient"
        fix = "give the example, or a parameter, requires_grad=True"
        raise IngotError([Problem("stage-empty", told, None, fix)])
    return Shown(halves.signature.name, stage, tuple(STAGES[stage](halves, stage)))


def write_graph(halves: Halves, half: str) -> str:
    """The graph of a half as a package keeps it: where its lines are in the source, not the lines.

    Longer ones are left out: see MOST_KEPT.
    """
    (section,) = STAGES[half](halves, half)
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


def _whole(halves: Halves, stage: str) -> Iterator[Section]:
    """One of the graphs, with the bytes that are kept between forward and backward."""
    graph = halves.traced.graph if stage == "joint" else getattr(halves, stage)
    gradients = {"gradients": len(halves.signature.gradients)} if stage == "joint" else {}
    yield _graph(stage, graph, {**_kept(halves), **gradients}, halves)


def _names(halves: Halves) -> dict[str, str]:
    """What the user calls the primals, by the names of their nodes."""
    signature = halves.signature
    nodes = halves.traced.graph.graph.find_nodes(op="placeholder")
    known = [h.names[0] for h in signature.held] + [t.name for t in signature.tensors]
    return {node.name: name for node, name in zip(nodes, known, strict=False)}


def _kept(halves: Halves) -> dict[str, int]:
    """Bytes kept between forward and backward at the sizes of the example."""
    row = described(halves, halves.traced.call.open.hints)
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
    return Section(
        name=name, counts={"operations": count_operations(graph), **counts},
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


def _list(
    name: str, rows: Iterable[dict[str, Any]], line: Callable[[dict[str, Any]], str],
    counts: Mapping[str, int] | None = None, what: str = "",
) -> Section:  # fmt: skip
    """A line for each row; by default the rows are counted."""
    listed = tuple(rows)
    counts = {what: len(listed)} if counts is None else dict(counts)
    return Section(name=name, counts=counts, rows=listed, text="\n".join(map(line, listed)))


def _both(halves: Halves) -> Iterator[tuple[str, GraphModule]]:
    yield "forward", halves.forward
    if halves.backward is not None:
        yield "backward", halves.backward


def _lowered(halves: Halves) -> Iterator[tuple[str, GraphModule, GraphModule, Lowering]]:
    """Compile each half as a package does, up to where its loops are fused."""
    for name, graph in _both(halves):
        with watch_lowering() as lowering:
            compile_archive(graph, name, halves.traced.call.open)
        assert lowering.graph is not None
        yield name, graph, lowering.graph, lowering


def _post_grad(halves: Halves, _: str) -> Iterator[Section]:
    for name, graph, left, lowering in _lowered(halves):
        passes = _passes(len(graph.graph.nodes), len(left.graph.nodes), lowering)
        yield _list(
            f"{name}, passes that changed something", passes,
            "{0[subsystem]:20} {0[name]:32} {0[before]} -> {0[after]}".format, what="passes",
        )  # fmt: skip
        yield _graph(f"{name}, after them", left, {}, halves)


def _passes(nodes: int, end: int, lowering: Lowering) -> Iterator[dict[str, Any]]:
    """Passes and nodes; where a count moves between two of them, by what Inductor does not name."""
    for subsystem, name, before, after in [*lowering.passes, ("", "", end, end)]:
        if before != nodes:
            yield {"subsystem": "", "name": "(not named)", "before": nodes, "after": before}
        if name:
            yield {"subsystem": subsystem, "name": name, "before": before, "after": after}
        nodes = after


def _ir(halves: Halves, stage: str) -> Iterator[Section]:
    for name, _, _, lowering in _lowered(halves):
        yield _scheduled(name, lowering.before, {"nodes before fusion": len(lowering.before)})


def _fused(halves: Halves, stage: str) -> Iterator[Section]:
    for name, _, _, lowering in _lowered(halves):
        counts = {"nodes before fusion": len(lowering.before), "after": len(lowering.after)}
        yield _list(f"{name}, decisions", _decisions(lowering), itemgetter("text"), counts)
        yield _scheduled(f"{name}, after fusion", lowering.after, {})


def _decisions(lowering: Lowering) -> Iterator[dict[str, Any]]:
    """Which nodes are one loop now, and why others are not, as far as Inductor says."""
    group = {part: node.name for node in lowering.after for part in node.parts}
    label = {n.name: f"{n.name} ({_operations(n)})" for n in (*lowering.before, *lowering.after)}
    for node in lowering.after:
        if len(node.parts) > 1:
            text = f"fused {', '.join(label[part] for part in node.parts)} into {node.name}"
            yield {"fused": True, "nodes": node.parts, "into": node.name, "text": text}
    # a name that a later fusion has replaced is that of nodes joined by _
    pairs = {
        (*(group.get(name.split("_")[0], name) for name in names), why): None
        for *names, why in lowering.apart
    }
    for first, second, why in pairs:
        if first != second:
            text = f"not fused {label[first]} with {label[second]}: {why}"
            yield {"fused": False, "nodes": (first, second), "why": why, "text": text}


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


def _constants(halves: Halves, _: str) -> Iterator[Section]:
    """Values of the source that were taken as they are; then the tensors that each graph holds:
    stored by the package, written into the code, or folded.
    """
    captured = halves.traced.call.captured
    taken: list[dict[str, Any]] = [
        {"name": n, "value": x, "becomes": "fixed"} for n, x in captured.constants.items()
    ]
    taken += [
        {"name": i.name, **_tensor(i.value), "becomes": "an input"}
        for i in captured.inputs
        if i.kind == "constant"
    ]
    yield _list("source", taken, _line_of_source, what="constants")
    for name, graph, left, lowering in _lowered(halves):
        known, written = constants_of(graph), constants_of(left)
        ways = {**dict.fromkeys(known, "folded"), **dict.fromkeys(written, "inlined")}
        ways |= dict.fromkeys(lowering.constants.values(), "stored")
        rows = [
            {"name": n, **_tensor(x), "becomes": ways[n], "origin": "graph"}
            for n, x in known.items()
        ]
        own = {n: "stored" for n, origin in lowering.constants.items() if origin not in known}
        own |= dict.fromkeys(lowering.folded, "split off")
        rows += [
            {"name": n, "tensor": "", "bytes": 0, "becomes": way, "origin": "Inductor"}
            for n, way in own.items()
        ]
        section = _list(
            name, rows, "{0[name]} {0[tensor]}, {0[bytes]} bytes: {0[becomes]}".format,
            what="constants",
        )  # fmt: skip
        folds = [f"{p[1]}: {p[2]} -> {p[3]} nodes" for p in lowering.passes if "constant" in p[1]]
        yield msgspec.structs.replace(section, text="\n".join([section.text, *folds]).strip())


def _line_of_source(row: dict[str, Any]) -> str:
    return f"{row['name']} = {row.get('value', row.get('tensor'))}: {row['becomes']}"


def _tensor(value: Tensor) -> dict[str, Any]:
    return {"tensor": _shape(value, str), "bytes": value.nbytes}


def _code(halves: Halves, _: str) -> Iterator[Section]:
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


STAGES: dict[str, Callable[[Halves, str], Iterator[Section]]] = {
    "joint": _whole, "forward": _whole, "backward": _whole, "post-grad": _post_grad,
    "inductor-ir": _ir, "fused": _fused, "constants": _constants, "code": _code,
}  # fmt: skip
"""The stages of a torch function and its gradient, in their order."""
