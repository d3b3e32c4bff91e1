"""store: a Run under way -> a folder; restore: the folder -> a Run that goes on bit for bit.

Kept are fields with their old states, the clock, random numbers, and how far each file got.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ingot import __version__
from ingot.codegen.disk import writable
from ingot.errors import IngotError, Problem, raise_if
from ingot.fields.jit.planner import private_of
from ingot.fields.outputs.rewind import Mark, mark, moved_on, rewind
from ingot.fields.shares import Parts, Share
from ingot.fields.spaces import Space
from ingot.hit import Block, Tree
from ingot.package.write import choose_place, open_scratch, put, save_tensors

if TYPE_CHECKING:
    from ingot.fields.runs import Run

__all__ = ["every", "find", "restore", "store"]

ENDING = ".checkpoint"
FORMAT = 3
STATE, ABOUT = "state.pt", "about.json"
CLOCK = ("number", "time", "dt", "failed", "iterations", "values", "times", "rows")
FREE = ("Executioner/num_steps", "Executioner/end_time")
"""What may change between a run and its continuation without a word."""


UNREADABLE = (
    RuntimeError, KeyError, TypeError, OSError, EOFError, pickle.UnpicklingError,
    zipfile.BadZipFile,
)  # fmt: skip


def every(count: int, place: Path) -> Callable[[Run], None]:
    """A watcher that stores a run after each `count` steps, and when its time is over."""
    if count < 1:
        message = f"a checkpoint every {count} steps is none"
        raise IngotError([Problem("wrong-value", message, fix="give 1 or more")])

    choose_folder(place)

    def watch(run: Run) -> None:
        if run.number % count == 0 or run.over():
            store(run, place)

    return watch


def choose_folder(place: Path) -> Path:
    """Where a checkpoint may be put: in place of nothing, or of one by any number of ranks."""
    parts = place.glob("rank[0-9]*.pt") if (place / STATE).exists() else ()
    return choose_place(place, STATE, ABOUT, *(part.name for part in parts))


def store(run: Run, place: Path) -> None:
    """Write all that a run needs to go on; a checkpoint in its place is replaced in one step."""
    share = run.state.space.share
    with writable(any_error=True):
        run.flush()
    started = [sorted(names_of(run, w.started)) for w in run.writers]
    if share is not None:
        # every rank's files are on the disk when the first one has heard of them
        rows = zip(*share.agree(started), strict=True)
        started = [sorted({name for names in row for name in names}) for row in rows]
    place = choose_folder(place)
    with writable(any_error=True), scratch_of_all(place, share) as folder:
        if share is not None:
            save_tensors(part_of(run, share), folder / name_part(share.rank))
            share.agree(None)
        if run.leads:
            about = {"ingot": __version__, "step": run.number, "time": run.time, "dt": run.dt}
            save_tensors(common_of(run, started), folder / STATE)
            (folder / ABOUT).write_text(json.dumps(about, indent=2) + "\n")
            put(folder, place)
        if share is not None:
            share.agree(None)


@contextmanager
def scratch_of_all(place: Path, share: Share | None) -> Iterator[Path]:
    """A folder to write into that becomes the checkpoint; ranks write into that of the first."""
    if share is None or share.rank == 0:
        with open_scratch(place) as folder:
            if share is not None:
                share.agree(str(folder))
            yield folder
    else:
        yield Path(share.agree(None)[0])


def common_of(run: Run, started: list[list[str]]) -> dict[str, Any]:
    """What all ranks have in common; a run that is not shared has its fields here."""
    share = run.state.space.share
    return {
        "format": FORMAT,
        "input": options_of(run.simulation.tree),
        "grid": grid_of(run.state.space),
        "clock": {name: getattr(run, name) for name in CLOCK},
        "state": state_of(run) if share is None else None,
        "parts": None if share is None else asdict(share.parts),
        "random": random_of(run.state.space),
        "fields": [
            {"frame": w.frame, "files": files}
            for w, files in zip(run.writers, started, strict=True)
        ],
        "marks": {n: mark(run.folder / n).plain() for n in growing(run, started)},
        "exodus": [
            {
                "frame": writer.frame,
                "scalars": list(writer.scalars),
                "shown": {name: torch.from_numpy(each) for name, each in writer.shown.items()},
            }
            for _, writer in run.exodus
        ],
        "files": names_of(run, run.files),
    }


def name_part(rank: int) -> str:
    """The file of a rank's fields."""
    return f"rank{rank:04d}.pt"


def part_of(run: Run, share: Share) -> dict[str, Any]:
    """The fields of this rank, and which of them lie as spectra do."""
    state = run.state
    names = {*state.buffers, *state.old}
    present = {n: state.buffers[n] if n in state.buffers else state.old[n][0] for n in names}
    spectral = {
        name: share.is_spectral(value, spectral=name in state.spectra or value.is_complex())
        for name, value in present.items()
    }
    return state_of(run) | {"spectral": spectral}


def restore(run: Run, place: Path) -> None:
    """Bring a run that has not started to where a checkpoint was stored, and its files with it."""
    place, share = find(place), run.state.space.share
    kept = loaded(place, STATE, run.state.space)
    stored = state_from(place, kept, run)
    raise_if([*differences(run, kept, stored), *missing_files(run, kept)])
    if share is not None:
        share.agree(None)  # every rank has looked at the files before the first changes them
    if run.leads:
        warn_of_changes(run.simulation.tree, kept["input"])
        for name, stood in kept["marks"].items():
            rewind(run.folder / name, Mark(**stood))
    if share is not None:
        share.agree(None)
    for name in CLOCK:
        setattr(run, name, kept["clock"][name])
    state = run.state
    state.buffers, state.old = stored["buffers"], stored["old"]
    state.done, state.counts = set(stored["done"]), stored["counts"]
    state.time, state.dt, state.sizes = stored["time"], stored["dt"], tuple(stored["sizes"])
    seed(kept["random"], state.space)
    run.files = {run.folder / name: None for name in kept["files"]}
    for writer, stored in zip(run.writers, kept["fields"], strict=True):
        writer.frame = stored["frame"]
        writer.started = {run.folder / name for name in stored["files"]}
    for (_, writer), stored in zip(run.exodus, kept["exodus"], strict=True):
        writer.frame, writer.scalars = stored["frame"], tuple(stored["scalars"])
        writer.shown = {name: each.cpu().numpy() for name, each in stored["shown"].items()}
    run.begun = True


def state_from(place: Path, kept: dict[str, Any], run: Run) -> dict[str, Any]:
    """The fields of this process: its own file, or its part of what others have stored.

    Of its own file torch keeps strides, so that as many ranks go on bit for bit.
    """
    space, share = run.state.space, run.state.space.share
    before = None if kept["parts"] is None else Parts(**kept["parts"])
    if before is not None and share is not None and share.parts == before:
        return loaded(place, name_part(share.rank), space)
    if before is not None:
        pieces = [loaded(place, name_part(rank), space) for rank in range(before.count)]
        stored = assemble(pieces, before)
    else:
        stored = kept["state"]
    if share is None:
        return stored
    spectral, cut = stored.get("spectral", {}), share.own

    def own(name: str, value: torch.Tensor) -> torch.Tensor:
        lies = spectral.get(name, name in run.state.spectra or value.is_complex())
        return cut(value, spectral=lies)

    return stored | {
        "buffers": {n: own(n, x) for n, x in stored["buffers"].items()},
        "old": {n: tuple(own(n, x) for x in row) for n, row in stored["old"].items()},
    }


def assemble(pieces: list[dict[str, Any]], parts: Parts) -> dict[str, Any]:
    """The fields of the whole box from those of all ranks."""
    first = pieces[0]

    def whole(name: str, values: list[torch.Tensor]) -> torch.Tensor:
        return parts.join(values, spectral=first["spectral"][name])

    old = {
        name: tuple(whole(name, [p["old"][name][age] for p in pieces]) for age in range(len(row)))
        for name, row in first["old"].items()
    }
    buffers = {name: whole(name, [p["buffers"][name] for p in pieces]) for name in first["buffers"]}
    return first | {"buffers": buffers, "old": old}


def find(place: Path) -> Path:
    """The checkpoint at a place: itself, a file of it, or the only one in a folder."""
    if os.path.isfile(place / STATE):
        return place
    if place.name in (STATE, ABOUT) and os.path.isfile(place):
        return place.parent
    folders = place.glob(f"*{ENDING}") if os.path.isdir(place) else ()
    inside = sorted(path for path in folders if (path / STATE).is_file())
    if len(inside) == 1:
        return inside[0]
    if inside:
        message = f"{place} holds {len(inside)} checkpoints"
        fix = f"name one: {', '.join(path.name for path in inside)}"
        raise IngotError([Problem("broken-checkpoint", message, fix=fix)])
    message = f"there is no checkpoint at {place}"
    fix = "store one: ingot run FILE --checkpoint-every 100"
    raise IngotError([Problem("file-not-found", message, fix=fix)])


def loaded(place: Path, name: str, space: Space) -> dict[str, Any]:
    """What a file of a checkpoint holds, its tensors on the device of the run."""
    try:
        kept = torch.load(place / name, weights_only=True, map_location=space.k2.device)
        known = name != STATE or kept["format"] == FORMAT
    except UNREADABLE as error:
        message = f"the checkpoint {place} cannot be read: {error}".splitlines()[0]
        fix = "take another checkpoint, or run from the start"
        raise IngotError([Problem("broken-checkpoint", message, fix=fix)]) from error
    if not known:
        message = f"the checkpoint {place} is of format {kept['format']}, not {FORMAT}"
        fix = "use the version of Ingot that its about.json names"
        raise IngotError([Problem("broken-checkpoint", message, fix=fix)])
    return kept


def state_of(run: Run) -> dict[str, Any]:
    """Fields and their old states; torch keeps strides, on which the last bit may depend."""
    state = run.state
    return {
        "buffers": state.buffers,
        "old": state.old,
        "done": sorted(state.done),
        "counts": state.counts,
        "time": state.time,
        "dt": state.dt,
        "sizes": list(state.sizes),
    }


def grid_of(space: Space) -> dict[str, Any]:
    """What must be the same in a run and its continuation."""
    return {
        "cells": list(space.whole_shape),
        "corner": [float(each) for each in space.lower[: space.dim]],
        "spacing": [float(each) for each in space.spacing[: space.dim]],
        "parallel_mode": space.mode,
        "rows of each rank": list(space.slabs),
        "precision": str(space.k2.dtype).removeprefix("torch."),
    }


def random_of(space: Space) -> dict[str, torch.Tensor]:
    """Where the sequences of random numbers stand."""
    found = {"cpu": torch.get_rng_state()}
    if space.k2.is_cuda:
        found["cuda"] = torch.cuda.get_rng_state(space.k2.device)
    return found


def seed(random: dict[str, torch.Tensor], space: Space) -> None:
    """Let the sequences of random numbers go on where they stood."""
    torch.set_rng_state(random["cpu"].cpu())
    if space.k2.is_cuda and "cuda" in random:
        torch.cuda.set_rng_state(random["cuda"].cpu(), space.k2.device)


def names_of(run: Run, paths: Iterable[Path]) -> list[str]:
    """What files are called in the folder of a run."""
    return [str(path.relative_to(run.folder)) for path in paths]


def growing(run: Run, started: list[list[str]]) -> list[str]:
    """The files that a run adds to: tables, and those of fields; others it writes whole."""
    targets, endings = run.simulation.outputs.targets, {"CSV": ".csv", "Exodus": ".e"}
    tables = {run.folder / f"{target.base}{endings[target.kind]}" for target in targets}
    fields = {name for names in started for name in names}
    return sorted({*names_of(run, tables & run.files.keys()), *fields})


def missing_files(run: Run, kept: dict[str, Any]) -> Iterator[Problem]:
    """A problem for each file that was being written and is not there as it was, or longer."""
    for name, stood in kept["marks"].items():
        if not moved_on(run.folder / name, Mark(**stood)):
            message = f"{run.folder / name} is not the file that the stored run was writing"
            fix = "copy the files of that run into this folder"
            yield Problem("checkpoint-files", message, fix=fix)


def differences(run: Run, kept: dict[str, Any], stored: dict[str, Any]) -> Iterator[Problem]:
    """A problem for each thing that makes a checkpoint one of another simulation."""
    fix = "restart with the file and the values that the checkpoint was made with"
    for what, now in grid_of(run.state.space).items():
        if kept["grid"][what] != now:
            message = f"{what}: the checkpoint has {said(kept['grid'][what])}, the file {said(now)}"
            yield Problem("checkpoint-differs", message, fix=fix)
    needed = {*run.simulation.buffers, *getattr(run.simulation.solver, "buffer", ())}
    # what a compiled sequence computes and reads by itself is not kept
    needed -= private_of(run.simulation)
    for name in sorted(needed - set(stored["buffers"])):
        message = f"the checkpoint has no buffer '{name}'"
        yield Problem("checkpoint-differs", message, fix=fix)
    for what, writers in (("fields", run.writers), ("exodus", run.exodus)):
        if len(kept[what]) != len(writers):
            named = {"fields": "[TensorOutputs]", "exodus": "Exodus files"}[what]
            message = f"the checkpoint has {len(kept[what])} {named}, the file {len(writers)}"
            yield Problem("checkpoint-differs", message, fix=fix)


def said(value: Any) -> str:
    """A value in a message."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def options_of(tree: Tree) -> dict[str, str]:
    """Every option of a file by its path."""
    found: dict[str, str] = {}

    def gather(block: Block) -> None:
        found.update({f"{block.path}/{field.name}": field.text for field in block.fields})
        for inner in block.blocks:
            gather(inner)

    for block in tree.blocks:
        gather(block)
    return found


def warn_of_changes(tree: Tree, before: dict[str, str]) -> None:
    """Say which options are not as they were: the run goes on, but not bit for bit."""
    now = options_of(tree)
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    for name in changed:
        if name not in FREE:
            was, new = (each.get(name, "not given") for each in (before, now))
            message = "%s is now %s, and was %s when the checkpoint was stored"
            logging.getLogger("ingot").warning(message, name, new, was)
