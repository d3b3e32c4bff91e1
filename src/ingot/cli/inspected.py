"""Model or metadata -> Inspected: what both have in common, to be read and to be drawn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ingot.cli.wiring import Wiring, wiring_of_model, wiring_of_package
from ingot.errors import IngotError
from ingot.options import Newton, knobs_of

if TYPE_CHECKING:
    import torch

    from ingot.model import Model
    from ingot.package.metadata import Metadata
    from ingot.program import Program

__all__ = ["Inspected", "inspected_model", "inspected_package"]


@dataclass(frozen=True, slots=True)
class Named:
    """An input or output: its kind, and its structural extents where they are known."""

    name: str
    kind: str
    sub_batch: tuple[int, ...] | None

    def __str__(self) -> str:
        extents = f" {self.sub_batch}" if self.sub_batch else ""
        return f"{self.name}: {self.kind}{extents}"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A segment: what it reads and gives."""

    kind: str
    name: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]

    def __str__(self) -> str:
        title = f"{self.kind} [{self.name}]" if self.name else self.kind
        return f"{title}: {', '.join(self.reads)} -> {', '.join(self.gives)}"


@dataclass(frozen=True, slots=True)
class Inspected:
    """What there is to tell of a model, live or compiled.

    slopes: derivative blocks, and whether each is the same for all points; remarks: other rows.
    """

    name: str
    title: str
    given: tuple[Named, ...]
    gives: tuple[Named, ...]
    parameters: "Mapping[str, tuple[str, torch.Tensor]]"
    segments: tuple[Stretch, ...]
    slopes: Mapping[tuple[str, str], bool]
    remarks: tuple[tuple[str, str], ...]
    wiring: Wiring

    def __str__(self) -> str:
        from ingot.package.describe import describe_tensor

        rows = [self.title]
        rows += [f"  given  {v}" for v in self.given]
        rows += [f"  gives  {v}" for v in self.gives]
        rows += [f"  param  {n}: {describe_tensor(k, x)}" for n, (k, x) in self.parameters.items()]
        rows += [f"  segment {i}  {s}" for i, s in enumerate(self.segments)]
        rows += [f"  slope  {row}" for row in self._slopes()]
        return "\n".join([*rows, *(f"  {title}  {text}" for title, text in self.remarks)])

    def _slopes(self) -> Iterator[str]:
        """A row for each output: by what there are derivatives of it."""
        for name in dict.fromkeys(y for y, _ in self.slopes):
            by = [
                f"{x} (the same for all points)" if free else x
                for (y, x), free in self.slopes.items()
                if y == name
            ]
            yield f"{name} by {', '.join(by)}"

    def report(self) -> dict[str, Any]:
        """The same for machines, under the names that a package's metadata has."""

        def variable(v: Named) -> dict[str, Any]:
            return {"name": v.name, "kind": v.kind, "sub_batch": v.sub_batch}

        return {
            "name": self.name,
            "inputs": [variable(v) for v in self.given],
            "outputs": [variable(v) for v in self.gives],
            "parameters": [
                {"name": n, "kind": k, "value": {"shape": list(x.shape), "values": _numbers(x)}}
                for n, (k, x) in self.parameters.items()
            ],
            "segments": [
                {"kind": s.kind, "name": s.name, "reads": s.reads, "gives": s.gives}
                for s in self.segments
            ],
            "derivatives": [{"output": y, "input": x} for y, x in self.slopes],
            "remarks": [text for _, text in self.remarks],
        }


def _numbers(x: "torch.Tensor") -> list[float]:
    return x.detach().double().flatten().tolist()


def inspected_model(model: "Model", shapes: dict[str, tuple[int, ...]], file: str) -> Inspected:
    """What a live model says; its slopes are those that can be asked for and are not zero."""
    from ingot.program import prepared
    from ingot.program.boundaries import find_segments

    remarks: tuple[tuple[str, str], ...] = ()
    extents: dict[str, tuple[int, ...]] = {}
    segments: tuple[Stretch, ...] = ()
    slopes: dict[tuple[str, str], bool] = {}
    try:
        program = prepared(model, shapes)
        known = program.extents
        found = (*program.inputs, *program.outputs)
        open_axes = dict.fromkeys(a.name for v in found for a in v.axes if a.name not in known)
        if open_axes:
            text = f"nothing gives the extent of {', '.join(open_axes)}; try --driver"
            remarks = (("open", text),)
        extents = {
            v.name: tuple(program.extent(a) for a in v.axes)
            for v in found
            if all(a.name in known for a in v.axes)
        }
        segments = tuple(Stretch(s.kind, s.name, s.reads, s.gives) for s in find_segments(program))
        slopes = dict.fromkeys(_depending(program), False)
    except IngotError as error:
        told = "; ".join(p.message for p in error.problems)
        remarks = (("untraced", told),)
    return Inspected(
        model.name,
        f"{model.name}: {model.type_name}, from {file}",
        tuple(Named(n, k.__name__, extents.get(n)) for n, k in model.inputs.items()),
        tuple(Named(n, k.__name__, extents.get(n)) for n, k in model.outputs.items()),
        {n: (type(v).__name__, v.data) for n, v in model.named_values().items()},
        segments, slopes, remarks, wiring_of_model(model),
    )  # fmt: skip


def _depending(program: "Program") -> Iterator[tuple[str, str]]:
    """The pairs (output, input) of which the first depends on the second."""
    from ingot.program.program import find_read

    for y in program.outputs:
        reached = find_read(y.nodes)
        for x in program.inputs:
            if any(n.id in reached for n in x.nodes):
                yield y.name, x.name


def inspected_package(meta: "Metadata", source: str, devices: Sequence[str]) -> Inspected:
    """What a package says of itself; devices: what there are folders for."""
    import torch

    parameters = {
        p.variable.name: (
            p.variable.kind,
            torch.tensor(p.value.values, dtype=torch.float64).reshape(p.value.shape),
        )
        for p in meta.parameters
    }
    others = [("devices", f"{', '.join(devices)}; name a folder for another")]
    others = others if len(devices) > 1 else []
    return Inspected(
        meta.name,
        f"{meta.name}: {meta.dtype} on {meta.device}, from {meta.origin.file or 'a text'}",
        tuple(Named(v.name, v.kind, v.sub_batch) for v in meta.inputs),
        tuple(Named(v.name, v.kind, v.sub_batch) for v in meta.outputs),
        parameters,
        tuple(Stretch(s.kind, s.name, s.reads, s.gives) for s in meta.segments),
        {(b.output, b.input): b.batch_independent for b in meta.derivatives},
        (*_remarks(meta), *others, ("source", source)),
        wiring_of_package(meta),
    )


def _remarks(meta: "Metadata") -> Sequence[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for p in meta.constants:
        shape = tuple(p.value.shape)
        rows.append(("stored", f"{p.variable.name}: {p.variable.kind} of shape {shape}"))
    for s in meta.solvers:
        searches = s.linesearch != "NONE"
        rules = {
            k.option: getattr(s, k.name)
            for k in knobs_of(Newton)
            if searches or "linesearch" not in k.name
        }
        told = (f"{n} {x:g}" if isinstance(x, float) else f"{n} {x}" for n, x in rules.items())
        rows.append(("solver", f"[{s.name}] {', '.join(told)}"))
    if meta.adjoints:
        rows.append(("adjoints", "of all inputs and promoted parameters"))
    if meta.kernel is not None:
        rows.append(("kernel", f"for {', '.join(meta.kernel.libraries)}"))
    if meta.inductor is not None:
        rows.append(("inductor", f"graphs of torch {meta.torch_version}"))
    return rows
