"""A folder or a stub -> Artifact, refused where anything does not fit, with the remedy."""

import ctypes
import logging
import tempfile
from functools import partial
from pathlib import Path

import torch

from ingot.codegen.library import open_library
from ingot.errors import IngotError, Problem, Span
from ingot.execute import compiler
from ingot.execute.levels import flags, supported
from ingot.package.metadata import FORMAT, SCHEMA, Metadata
from ingot.package.seal import content_of, opened, other_torch, wrong_files
from ingot.package.target import Backend
from ingot.runtime.artifact import Artifact
from ingot.runtime.backends import GraphBackend, KernelBackend

__all__ = ["again_of", "load", "metadata_of"]

LOG = logging.getLogger("ingot")


def load(
    path: str | Path, *, device: str = "cpu", dtype: torch.dtype | None = None,
    backend: Backend | None = None,
) -> Artifact:  # fmt: skip
    """The artifact of a package folder, of the folder above its device folders, or of a stub.

    A package that holds both backends runs its kernel, unless told otherwise.
    """
    place = Path(path)
    if place.suffix == ".i":
        from ingot.runtime.stub import from_stub

        return from_stub(place, device=device, dtype=dtype, backend=backend)
    meta, folder = metadata_of(place, device)
    _check(meta, folder, device, dtype)
    held = {"kernel": meta.kernel, "inductor": meta.inductor}
    chosen = backend or ("kernel" if meta.kernel is not None else "inductor")
    if held[chosen] is None:
        raise _problem(
            "wrong-backend", f"the package holds no {chosen} backend",
            f"compile with --backend {chosen}",
        )  # fmt: skip
    if chosen == "kernel":
        return Artifact(meta, KernelBackend(meta, _library(meta, folder)))
    return Artifact(meta, _graphs(meta, folder))


def _graphs(meta: Metadata, folder: Path) -> GraphBackend:
    """The compiled graphs, which only the torch that made them runs."""
    for problem in other_torch(meta.torch_version, again_of(meta)):
        raise IngotError([problem])
    return GraphBackend.of(meta, partial(_content, meta, folder))


def _content(meta: Metadata, folder: Path, name: str) -> bytes:
    return content_of(meta, folder, name, again_of(meta))


def again_of(meta: Metadata) -> str:
    """How to make a package anew."""
    return f"compile it again: {meta.origin.command or 'ingot compile'}"


def metadata_of(place: Path, device: str) -> tuple[Metadata, Path]:
    """The metadata of a package, and the folder that holds it."""
    for folder in (place, place / device):
        files = sorted(folder.glob("*_meta.json")) if folder.is_dir() else []
        if files:
            return opened(files[0], Metadata, FORMAT, SCHEMA, AGAIN), folder
    found = place.glob("*/*_meta.json") if place.is_dir() else ()
    have = sorted(p.parent.name for p in found if not p.parent.name.startswith("."))
    if have:
        raise _problem(
            "wrong-device", f"{place} holds a package for {', '.join(have)}, not for '{device}'",
            f"load it with device='{have[0]}', or compile with --device {device}",
        )  # fmt: skip
    raise _problem("file-not-found", f"no package in '{place}'", "compile one: ingot compile FILE")


AGAIN = "compile the package again"


def _check(meta: Metadata, folder: Path, device: str, dtype: torch.dtype | None) -> None:
    if meta.device != device:
        raise _problem(
            "wrong-device", f"the package runs on {meta.device}, not on {device}",
            f"compile with --device {device}",
        )  # fmt: skip
    wanted = None if dtype is None else str(dtype).removeprefix("torch.")
    if wanted is not None and wanted != meta.dtype:
        raise _problem(
            "wrong-dtype", f"the package computes in {meta.dtype}, not in {wanted}",
            f"compile with --dtype {wanted}",
        )  # fmt: skip
    for problem in wrong_files(meta, folder, again_of(meta)):
        raise IngotError([problem])


def _library(meta: Metadata, folder: Path) -> ctypes.CDLL:
    """The library of the best CPU level that runs here, or one rebuilt from the source."""
    kernel = meta.kernel
    assert kernel is not None
    have = supported()
    level = next((x for x in have if x in kernel.libraries), None)
    if level is not None:
        if level != have[0]:
            LOG.warning("%s: running at %s, this machine has %s", meta.name, level, have[0])
        return open_library(_content(meta, folder, kernel.libraries[level]))
    held = ", ".join(kernel.libraries)
    try:
        compiler.command()
    except IngotError:
        raise _problem(
            "wrong-level",
            f"the package holds {held}, this machine runs {have[0]}, and there is no compiler",
            "install g++, or compile the package on a machine like this one",
        ) from None
    LOG.warning("%s: rebuilding for %s, the package holds %s", meta.name, have[0], held)
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch) / "rebuilt.so"
        chosen = (*compiler.FLAGS, *flags(have[0]))
        source = Path(scratch) / "rebuilt.cpp"
        source.write_bytes(_content(meta, folder, kernel.source))
        compiler.translate(source, chosen, library)
        return open_library(library.read_bytes())


def _problem(code: str, message: str, fix: str, span: Span | None = None) -> IngotError:
    return IngotError([Problem(code, message, span, fix)])
