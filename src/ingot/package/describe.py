"""A Compilation after one of its stages, as text: what the stage has filled in."""

from collections.abc import Iterable, Iterator, Mapping

import torch

from ingot.package import Stage
from ingot.package.compilation import Compilation, Names
from ingot.types import Value

__all__ = ["describe", "describe_tensor"]

MAX_NUMBERS_SHOWN = 9  # a 3 x 3 tensor is still read at a glance


def describe(c: Compilation, stage: Stage) -> str:
    """What a stage has made, in the user's names."""
    return "\n".join(_TEXTS[stage](c))


def describe_tensor(kind: str, data: torch.Tensor) -> str:
    """A constant as people read it: its kind, and its numbers or what they range over."""
    if data.ndim == 0:
        return f"{kind} = {data.item():g}"
    rows = [f"{x:g}" for x in data.detach().flatten().tolist()]
    shape = f"shape ({', '.join(map(str, data.shape))})"
    if len(rows) <= MAX_NUMBERS_SHOWN:
        return f"{kind} = {' '.join(rows)}" + (f", {shape}" if data.ndim > 1 else "")
    return f"{kind} of {shape}, from {data.min().item():g} to {data.max().item():g}"


def _values(title: str, values: Mapping[str, Value], names: Names | None = None) -> list[str]:
    return [
        f"{title}  {_outside(n, names)}{describe_tensor(type(v).__name__, v.data)}"
        for n, v in values.items()
    ]


def _outside(name: str, names: Names | None) -> str:
    shown = name if names is None else names[name]
    return f"{shown}: " if shown == name else f"{shown} ({name} in the file): "


def _loaded(c: Compilation) -> Iterator[str]:
    if c.tree is not None:
        yield f"file  {c.tree.file}, sha256 {c.tree.digest[:12]}"
        yield from (f"override  {text}" for text in c.tree.overrides)
    if c.driver:
        yield f"driver  {c.driver}"
    yield str(c.model)


def _selected(c: Compilation) -> Iterator[str]:
    yield from _values("promoted", c.promoted) or ["nothing is promoted"]
    count = len(c.model.named_values()) - len(c.promoted)
    yield f"{count} other parameters keep their values"


def _routed(c: Compilation) -> Iterator[str]:
    for n, kind in c.model.inputs.items():
        yield f"input      {_outside(n, c.inputs)}{kind.__name__}"
    yield from _values("parameter", c.promoted, c.parameters)
    for n, kind in c.model.outputs.items():
        yield f"output     {_outside(n, c.outputs)}{kind.__name__}"
    yield from (f"slope      {y}:{x}" for y, x in c.pairs)


def _frozen(c: Compilation) -> Iterable[str]:
    rows = [*_values("constant", c.constants), *_values("hidden input", c.batched)]
    return rows or ["there is nothing to freeze"]


def _shaped(c: Compilation) -> Iterable[str]:
    rows = []
    for v in (*c.program.inputs, *c.program.outputs):
        if v.axes:
            extents = tuple(c.program.extent(axis) for axis in v.axes)
            whole = ", ".join(["*batch", *map(str, extents), *map(str, v.kind.base)])
            rows.append(f"{v.name}  structural extents {extents}, an array is ({whole})")
    return rows or ["no variable has a structural extent"]


def _partitioned(c: Compilation) -> Iterator[str]:
    for i, segment in enumerate(c.segments):
        title = f"implicit [{segment.name}]" if segment.kind == "implicit" else segment.kind
        yield f"segment {i}  {title}, {segment.program.count()} operations"
        yield from (f"  {row}" for row in str(segment.program).splitlines())
    yield from (f"slope  {y}:{x}" for y, x in c.pairs)


def _lowered(c: Compilation) -> Iterator[str]:
    """The files of the package; under the sources what each entry costs at a point."""
    yield from c.sources
    for title, kernel in c.kernels.items():
        yield f"  {title}: {kernel.count()} operations a point"
        for solve in kernel.solves:
            if solve.factored is not None:
                rows = solve.factored.describe(kernel, solve).splitlines()
                yield from (f"    {row}" for row in rows)
    if c.metadata.kernel is not None:
        yield from c.metadata.kernel.libraries.values()
    if c.graphs is not None:
        yield str(c.graphs)
    yield f"{c.model.name}_meta.json"


_TEXTS = {
    "load": _loaded, "select": _selected, "route": _routed, "freeze": _frozen, "shape": _shaped,
    "partition": _partitioned, "lower": _lowered,
}  # fmt: skip
