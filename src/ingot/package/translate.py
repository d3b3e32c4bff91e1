"""A lowered Compilation -> the files of a package in a folder, by the compilers of its backends."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ingot.codegen import compiler
from ingot.codegen.cpu_levels import choose_flags
from ingot.codegen.nvrtc import compile_cubin
from ingot.package.compilation import Compilation
from ingot.package.metadata import Metadata
from ingot.package.seal import write_sealed

__all__ = ["count_compiled", "translate"]


def count_compiled(c: Compilation) -> int:
    """How many files compilers make."""
    kernel = c.metadata.kernel
    graphs = () if c.graphs is None else c.graphs.graphs
    return (0 if kernel is None else len(kernel.libraries)) + len(graphs)


def translate(
    c: Compilation, folder: Path, *, progress: Callable[[str], None] = lambda _: None
) -> Metadata:
    """Write the sources, the code of each CPU level or GPU architecture, every graph; seal them.

    progress: the name of each file that is compiled
    """

    def tell(name: str) -> None:
        progress(f"{c.device}/{name}")

    for name, text in c.sources.items():
        (folder / name).write_text(text)
    _compile_kernel(c, folder, tell)
    if c.graphs is not None:
        from ingot.execute import inductor

        inductor.lower(c.graphs, folder, jobs=c.target.jobs, progress=tell)
    return write_sealed(c.metadata, folder / f"{c.model.name}_meta.json")


def _compile_kernel(c: Compilation, folder: Path, tell: Callable[[str], None]) -> None:
    """Compile the source of the kernel for all that it shall run on."""
    kernel = c.metadata.kernel
    if kernel is None:
        return

    def compile_for(target: str, library: str) -> None:
        if c.device == "cuda":
            (folder / library).write_bytes(compile_cubin(c.sources[kernel.source], target))
        else:
            chosen = (*compiler.FLAGS, *choose_flags(target))
            compiler.translate(folder / kernel.source, chosen, folder / library)
        tell(library)

    with ThreadPoolExecutor(c.target.jobs) as pool:
        for job in [pool.submit(compile_for, *pair) for pair in kernel.libraries.items()]:
            job.result()
