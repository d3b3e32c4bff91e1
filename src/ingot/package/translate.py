"""A lowered Compilation -> the files of a package in a folder, by the compilers of its backends."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ingot.codegen import compiler
from ingot.codegen.cpu_levels import choose_flags
from ingot.package.compilation import Compilation
from ingot.package.metadata import Metadata
from ingot.package.seal import write_sealed

__all__ = ["translate"]


def translate(
    c: Compilation, folder: Path, *, expect: Callable[[int], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> Metadata:  # fmt: skip
    """Write the sources, a library for each CPU level and every graph, and seal the metadata.

    expect: is told how many files will be compiled; progress: the name of each that is done
    """
    kernel = c.metadata.kernel
    libraries = {} if kernel is None else kernel.libraries
    expect(len(libraries) + (0 if c.graphs is None else len(c.graphs.graphs)))
    for name, text in c.sources.items():
        (folder / name).write_text(text)

    def compile_level(level: str, library: str) -> None:
        assert kernel is not None
        chosen = (*compiler.FLAGS, *choose_flags(level))
        compiler.translate(folder / kernel.source, chosen, folder / library)
        progress(library)

    with ThreadPoolExecutor(c.target.jobs) as pool:
        for job in [pool.submit(compile_level, *pair) for pair in libraries.items()]:
            job.result()
    if c.graphs is not None:
        from ingot.execute import inductor

        inductor.lower(c.graphs, folder, jobs=c.target.jobs, progress=progress)
    return write_sealed(c.metadata, folder / f"{c.model.name}_meta.json")
