"""The seven stages, metadata, digests, the stub: a model becomes a package on disk.

Here: what is compiled for whom, and how it is written. Not here: tracing and passes (program), code
generation (execute), loading (runtime).
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ingot.hit import Tree
    from ingot.model import Factory
    from ingot.package.metadata import Metadata
    from ingot.package.target import Target

from ingot.keywords import check_keywords

__all__ = ["Package", "Stage", "compile_model"]

Stage = Literal["load", "select", "route", "freeze", "shape", "partition", "lower"]
"""The stages of a compilation in their order; `package/stages.py` holds them."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package in its place: a folder for each device, and the metadata of the first."""

    folders: tuple[Path, ...]
    stub: Path | None
    metadata: "Metadata"

    @property
    def folder(self) -> Path:
        """The folder of the first device."""
        return self.folders[0]


@check_keywords
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

    For several devices all is compiled before anything is put in its place.

    source: a file as it was read, or the Factory that has built of it what a driver needs;
    expect: is told how many files will be compiled; progress: the name of each that is done;
    untrusted: Python of the file is evaluated within bounds
    """
    from ingot.codegen.nvrtc import require_architectures
    from ingot.package.lower import lower_for_each
    from ingot.package.stages import advance, load
    from ingot.package.stub import widen_stub, write_stub
    from ingot.package.translate import count_compiled, translate
    from ingot.package.write import choose_place, open_scratch, put_all, put_text

    loaded = load(
        source, name, target, driver=driver, shapes=shapes, command=command, untrusted=untrusted
    )
    for device in target.device:
        choose_place(target.output_dir / name / device)  # before anything is compiled
    if "cuda" in target.device:
        require_architectures(target.cuda_arch)
    lowered = [*lower_for_each(advance(loaded, "partition"))]
    expect(sum(map(count_compiled, lowered)))
    places = tuple(choose_place(target.output_dir / name / c.device) for c in lowered)
    with ExitStack() as stack:
        folders = [stack.enter_context(open_scratch(place)) for place in places]
        pairs = zip(lowered, folders, strict=True)
        metadata = [translate(c, folder, progress=progress) for c, folder in pairs]
        program = metadata[0].origin.program
        file = target.output_dir / f"{name}_aoti.i" if target.stub else None
        if file is not None and (old := widen_stub(file, program)):
            put_text(old, file)
        put_all(dict(zip(places, folders, strict=True)))
    if file is not None:
        put_text(write_stub(lowered[0], file, program), file)
    return Package(places, file, metadata[0])
