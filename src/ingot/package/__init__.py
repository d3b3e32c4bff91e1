"""The seven stages, metadata, digests, the stub: a model becomes a package on disk.

Here: what is compiled for whom, and how it is written. Not here: tracing and passes (program), code
generation (execute), loading (runtime).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ingot.hit import Tree
    from ingot.model import Factory
    from ingot.package.metadata import Metadata
    from ingot.package.target import Target

__all__ = ["Package", "Stage", "compile_model"]

Stage = Literal["load", "select", "route", "freeze", "shape", "partition", "lower"]
"""The stages of a compilation in their order; `package/stages.py` holds them."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package in its place."""

    folder: Path
    stub: Path | None
    metadata: "Metadata"


def compile_model(
    source: "Tree | Factory",
    name: str,
    target: "Target",
    *,
    driver: str | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    command: str = "",
    expect: Callable[[int], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
    untrusted: bool = False,
) -> Package:
    """Run all stages and put the package, and the stub beside it, in their places.

    source: a file as it was read, or the Factory that has built of it what a driver needs;
    expect: is told how many files will be compiled; progress: the name of each that is done;
    untrusted: Python of the file is evaluated within bounds
    """
    from ingot.package.stages import advance, load
    from ingot.package.stub import write_stub
    from ingot.package.translate import translate
    from ingot.package.write import open_scratch, put, put_text

    loaded = load(
        source, name, target, driver=driver, shapes=shapes, command=command, untrusted=untrusted
    )
    lowered = advance(loaded)
    place = target.output_dir / name / target.device
    with open_scratch(place) as folder:
        metadata = translate(lowered, folder, expect=expect, progress=progress)
        put(folder, place)
    file = target.output_dir / f"{name}_aoti.i" if target.stub else None
    if file is not None:
        put_text(write_stub(lowered, file), file)
    return Package(place, file, metadata)
