"""A folder, a stub or an input file -> its model, or an error that says what does not fit."""

import ctypes
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args, overload

import torch

from ingot.codegen import compiler
from ingot.codegen.architectures import choose_target
from ingot.codegen.cpu_levels import choose_flags, find_supported_levels
from ingot.codegen.cuda import open_functions
from ingot.codegen.library import open_library
from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.execute.devices import name_device, require_device, tell_missing
from ingot.execute.kernel_cuda import open_device_runners
from ingot.execute.kernel_run import Runners, open_native_runners
from ingot.keywords import check_keywords
from ingot.messages import refuse, tell
from ingot.options import Device, PackagedBackend, Precision, find_no_choice
from ingot.package.consistent import find_inconsistencies
from ingot.package.metadata import FORMAT, SCHEMA, KernelFiles, Metadata
from ingot.package.seal import GRAPHS, find_other_torch, open_metadata, read_files
from ingot.package.write import find_older, read_program
from ingot.runtime.artifact import Artifact
from ingot.runtime.backends import GraphBackend, load_kernel

if TYPE_CHECKING:
    from ingot.model import Model

__all__ = ["again_of", "find_other_folder", "load", "metadata_of"]

LOG = logging.getLogger("ingot")


@overload
def load(
    path: str | Path, *, device: str | torch.device = "cpu", dtype: torch.dtype | None = None,
    backend: PackagedBackend | None = None,
) -> Artifact: ...  # fmt: skip


@overload
def load(
    path: str | Path, *, name: str | None, device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None, backend: PackagedBackend | None = None,
) -> "Artifact | Model": ...  # fmt: skip


@check_keywords
def load(
    path: str | Path, *, name: str | None = None, device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None, backend: PackagedBackend | None = None,
) -> "Artifact | Model":  # fmt: skip
    """The artifact of a package folder, of the folder above its device folders, or of a stub; the
    live model of an input file.

    device: what it runs on: cpu, cuda or cuda:1; name: which model of a file, or which package of a
    folder that holds several. A package that holds both backends runs its kernel, unless told
    otherwise.
    """
    place, device = Path(path), name_device(device)
    if place.suffix == ".i":
        from ingot.runtime.stub import load_model

        return load_model(place, name, device=device, dtype=dtype, backend=backend)
    raise_if(_find_no_choice(device, dtype, backend))
    if name is not None:
        place = _find_package(place, name, _read_kind(device))
    meta, folder = metadata_of(place, device)
    _check(meta, device, dtype)
    contents = read_files(meta, folder, again_of(meta))
    chosen = backend or ("kernel" if meta.kernel is not None else "inductor")
    if getattr(meta, chosen) is None:
        raise refuse("no backend", backend=chosen)
    if chosen == "kernel":
        return Artifact(meta, load_kernel(meta, _open_kernel(meta, contents, device)))
    raise_if(find_other_torch(meta.torch_version, again_of(meta)))
    return Artifact(meta, GraphBackend.of(meta, contents.__getitem__))


def _find_no_choice(device: str, dtype: object, backend: object) -> Iterator[Problem]:
    """Words that name no device, precision or backend of any package."""
    kind, known = _read_kind(device), get_args(Device)
    if kind not in known:
        fix = did_you_mean(kind, known) or "give 'cpu', 'cuda' or 'cuda:1'"
        yield tell("no device name", name=device, fix=fix)
    if dtype is not None:
        word = str(dtype).removeprefix("torch.")
        yield from find_no_choice("dtype", word, get_args(Precision))
    if backend is not None:
        yield from find_no_choice("backend", backend, get_args(PackagedBackend))


def _find_package(place: Path, name: str, device: str) -> Path:
    """The folder of the package so called: the place itself, or one in it."""
    files = [(place, f) for f in (*place.glob("*_meta.json"), *place.glob(f"{device}/*_meta.json"))]
    files = files or [(f.parents[1], f) for f in sorted(place.glob(f"*/{device}/*_meta.json"))]
    known = {f.name.removesuffix("_meta.json"): folder for folder, f in files}
    if name in known or not known:
        return known.get(name, place)  # where there is none, it is told when it is read
    fix = did_you_mean(name, known) or f"one of: {', '.join(known)}"
    raise refuse("unknown package", name=name, place=place, fix=fix)


def again_of(meta: Metadata) -> str:
    """How to make a package anew."""
    return f"compile it again: {meta.origin.command or 'ingot compile'}"


def metadata_of(place: Path, device: str) -> tuple[Metadata, Path]:
    """The metadata of a package, and the folder that holds it."""
    for folder in (place, place / _read_kind(device)):
        files = sorted(folder.glob("*_meta.json")) if os.path.isdir(folder) else []
        if not files:
            continue
        if len(files) > 1:
            names = " and ".join(f.name for f in files)
            raise refuse("two packages", folder=folder, files=names)
        meta = open_metadata(files[0], Metadata, FORMAT, SCHEMA, AGAIN)
        if files[0].name != f"{meta.name}_meta.json":
            named = {"file": files[0].name, "name": meta.name}
            raise refuse("other name", **named, again=again_of(meta))
        if folder.name == meta.device and meta.device in find_older(folder.parent):
            raise refuse("older", folder=folder, again=again_of(meta))
        told = (f"{files[0].name}: {text}" for text in find_inconsistencies(meta))
        raise_if(Problem("broken-package", text, None, again_of(meta)) for text in told)
        raise_if(find_other_folder(meta, folder) if folder != place else ())
        return meta, folder
    found = place.glob("*/*_meta.json") if os.path.isdir(place) else ()
    have = sorted(p.parent.name for p in found if not p.parent.name.startswith("."))
    if have:
        held, fix = ", ".join(have), fix_device(have[0])
        raise refuse("other devices", place=place, held=held, device=device, fix=fix)
    if (place / GRAPHS).is_file():
        raise refuse("torch package", place=place)
    raise refuse("no package", place=place)


def find_other_folder(meta: Metadata, folder: Path) -> Iterator[Problem]:
    """A folder of another device beside one, of another program: which is meant is not known.

    What waits for a compile is refused by itself, and no reason to refuse what is newer.
    """
    own, older = meta.origin.program, find_older(folder.parent)
    for device in get_args(Device):
        beside = folder.parent / device
        other = read_program(beside) if device != meta.device and device not in older else ""
        if own and other and other != own:
            yield tell("other folder", folder=folder, other=beside, again=again_of(meta))


AGAIN = "compile the package again"


def fix_device(held: str) -> str:
    """What to do about a package for another device, which may not be here."""
    both = "compile it for both: ingot compile FILE --device cpu cuda"
    other = f"; or load it with device='{held}' (--device {held})"
    return both if tell_missing(held) else both + other


def _check(meta: Metadata, device: str, dtype: torch.dtype | None) -> None:
    if meta.device != _read_kind(device):
        fix = fix_device(meta.device)
        raise refuse("other device", held=meta.device, device=device, fix=fix)
    wanted = None if dtype is None else str(dtype).removeprefix("torch.")
    if wanted is not None and wanted != meta.dtype:
        raise refuse("other precision", held=meta.dtype, dtype=wanted)


def _read_kind(device: str) -> str:
    """What kind of device a name means: `cuda` for `cuda:1`; a folder of a package is so called."""
    return device.partition(":")[0]


def _open_kernel(meta: Metadata, contents: Mapping[str, bytes], device: str) -> Runners:
    """The kernel of a package, made ready on a device."""
    assert meta.kernel is not None
    if meta.device == "cpu":
        return open_native_runners(_open_library(meta, meta.kernel, contents), meta.kernel.prefix)
    place = require_device(
        device, "load its folder for the CPU, device='cpu', which --device cpu cuda writes"
    )
    file = meta.kernel.libraries[_choose_code(meta, meta.kernel, place)]
    try:
        functions = open_functions(contents[file], place)
    except IngotError as error:
        told = f"'{file}' is refused by "
        raise IngotError([replace(p, message=told + p.message) for p in error.problems]) from None
    return open_device_runners(functions, meta.kernel.prefix, place)


def _choose_code(meta: Metadata, kernel: KernelFiles, device: torch.device) -> str:
    """The architecture whose code a GPU runs best; an error where it runs none."""
    capability = torch.cuda.get_device_capability(device)
    target = choose_target(kernel.libraries, capability)
    own = "{}{}".format(*capability)
    if target is None:
        name = torch.cuda.get_device_name(device)
        held = ", ".join(kernel.libraries)
        raise refuse("other architecture", held=held, device=device, own=own, name=name)
    if target.startswith("compute_"):
        LOG.warning("%s: the driver compiles %s, this GPU is sm_%s", meta.name, target, own)
    return target


def _open_library(
    meta: Metadata, kernel: KernelFiles, contents: Mapping[str, bytes]
) -> ctypes.CDLL:
    """The library of the best CPU level that runs here, or one rebuilt from the source."""
    have = find_supported_levels()
    level = next((x for x in have if x in kernel.libraries), None)
    if level is not None:
        if level != have[0]:
            LOG.warning("%s: running at %s, this machine has %s", meta.name, level, have[0])
        return open_library(contents[kernel.libraries[level]])
    held = ", ".join(kernel.libraries)
    try:
        compiler.find_compiler()
    except IngotError:
        raise refuse("other level", held=held, here=have[0]) from None
    LOG.warning("%s: rebuilding for %s, the package holds %s", meta.name, have[0], held)
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch) / "rebuilt.so"
        chosen = (*compiler.FLAGS, *choose_flags(have[0]))
        source = Path(scratch) / "rebuilt.cpp"
        source.write_bytes(contents[kernel.source])
        compiler.translate(source, chosen, library)
        return open_library(library.read_bytes())
