"""The seven stages, metadata, digests, the stub: a model becomes a package on disk.

Here: what is compiled for whom, and how it is written. Not here: tracing and passes (program), code
generation (execute), loading (runtime).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingot.hit import Tree
    from ingot.package.metadata import Metadata
    from ingot.package.target import Target

__all__ = ["Package", "compile_model"]


@dataclass(frozen=True, slots=True)
class Package:
    """A package in its place."""

    folder: Path
    stub: Path | None
    metadata: "Metadata"


def compile_model(
    tree: "Tree",
    name: str,
    target: "Target",
    *,
    driver: str | None = None,
    shapes: dict[str, tuple[int, ...]] | None = None,
    command: str = "",
    expect: Callable[[int], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
    untrusted: bool = False,
) -> Package:
    """Run all stages and put the package, and the stub beside it, in their places.

    expect: is told how many files will be compiled; progress: the name of each that is done;
    untrusted: Python of the file is evaluated within bounds
    """
    from ingot.package.lower import lower
    from ingot.package.stages import freeze, load, partition, route, select, shape
    from ingot.package.stub import stub
    from ingot.package.write import put, put_text, scratch

    stage = load(tree, name, target, driver, untrusted=untrusted)
    shaped = shape(freeze(route(select(stage))), shapes or {})
    parted = partition(shaped)
    place = target.output_dir / name / target.device
    with scratch(place) as folder:
        lowered = lower(parted, name, folder, command, expect, progress)
        put(folder, place)
    file = target.output_dir / f"{name}_aoti.i" if target.stub else None
    if file is not None:
        put_text(stub(parted, name, file, command), file)
    return Package(place, file, lowered.metadata)
