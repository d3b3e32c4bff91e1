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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ingot import __version__
from ingot.codegen.disk import writable
from ingot.errors import IngotError, Problem, raise_if
from ingot.fields.outputs.rewind import Mark, mark, moved_on, rewind
from ingot.fields.spaces import Space
from ingot.hit import Block, Tree
from ingot.package.write import choose_place, open_scratch, put, save_tensors

if TYPE_CHECKING:
    from ingot.fields.runs import Run

__all__ = ["every", "find", "restore", "store"]

ENDING = ".checkpoint"
FORMAT = 1
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

    choose_place(place, STATE, ABOUT)

    def watch(run: Run) -> None:
        if run.number % count == 0 or run.over():
            store(run, place)

    return watch


def store(run: Run, place: Path) -> None:
    """Write all that a run needs to go on; a checkpoint in its place is replaced in one step."""
    kept = {
        "format": FORMAT,
        "input": options_of(run.simulation.tree),
        "grid": grid_of(run.state.space),
        "clock": {name: getattr(run, name) for name in CLOCK},
        "state": state_of(run),
        "random": random_of(run.state.space),
        "fields": [{"frame": w.frame, "files": names_of(run, w.started)} for w in run.writers],
        "marks": {n: mark(run.folder / n).plain() for n in growing(run)},
        "exodus": [
            {
                "times": writer.times,
                "scalars": writer.scalars,
                "frames": {
                    name: [torch.from_numpy(frame) for frame in frames]
                    for name, frames in writer.frames.items()
                },
            }
            for _, writer in run.exodus
        ],
        "files": names_of(run, run.files),
    }
    about = {"ingot": __version__, "step": run.number, "time": run.time, "dt": run.dt}
    place = choose_place(place, STATE, ABOUT)
    with writable(any_error=True), open_scratch(place) as folder:
        save_tensors(kept, folder / STATE)
        (folder / ABOUT).write_text(json.dumps(about, indent=2) + "\n")
        put(folder, place)


def restore(run: Run, place: Path) -> None:
    """Bring a run that has not started to where a checkpoint was stored, and its files with it."""
    kept = loaded(find(place), run.state.space)
    raise_if([*differences(run, kept), *missing_files(run, kept)])
    warn_of_changes(run.simulation.tree, kept["input"])
    for name, stood in kept["marks"].items():
        rewind(run.folder / name, Mark(**stood))
    for name in CLOCK:
        setattr(run, name, kept["clock"][name])
    state, stored = run.state, kept["state"]
    state.buffers, state.old = stored["buffers"], stored["old"]
    state.done, state.counts = set(stored["done"]), stored["counts"]
    state.time, state.dt = stored["time"], stored["dt"]
    seed(kept["random"], state.space)
    run.files = {run.folder / name: None for name in kept["files"]}
    for writer, stored in zip(run.writers, kept["fields"], strict=True):
        writer.frame = stored["frame"]
        writer.started = {run.folder / name for name in stored["files"]}
    for (_, writer), stored in zip(run.exodus, kept["exodus"], strict=True):
        writer.times, writer.scalars = stored["times"], stored["scalars"]
        frames = stored["frames"].items()
        writer.frames = {name: [each.cpu().numpy() for each in row] for name, row in frames}
    run.begun = True


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


def loaded(place: Path, space: Space) -> dict[str, Any]:
    """What a checkpoint holds, its tensors on the device of the run."""
    try:
        kept = torch.load(place / STATE, weights_only=True, map_location=space.k2.device)
        known = kept["format"] == FORMAT
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
    }


def grid_of(space: Space) -> dict[str, Any]:
    """What must be the same in a run and its continuation."""
    return {
        "cells": list(space.shape),
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


def growing(run: Run) -> list[str]:
    """The files that a run adds to: tables, and those of fields; others it writes whole."""
    targets = run.simulation.outputs.targets
    tables = {run.folder / f"{target.base}.csv" for target in targets if target.kind == "CSV"}
    fields = {path for writer in run.writers for path in writer.started}
    return names_of(run, sorted((tables & run.files.keys()) | fields))


def missing_files(run: Run, kept: dict[str, Any]) -> Iterator[Problem]:
    """A problem for each file that was being written and is not there as it was, or longer."""
    for name, stood in kept["marks"].items():
        if not moved_on(run.folder / name, Mark(**stood)):
            message = f"{run.folder / name} is not the file that the stored run was writing"
            fix = "copy the files of that run into this folder"
            yield Problem("checkpoint-files", message, fix=fix)


def differences(run: Run, kept: dict[str, Any]) -> Iterator[Problem]:
    """A problem for each thing that makes a checkpoint one of another simulation."""
    fix = "restart with the file and the values that the checkpoint was made with"
    for what, now in grid_of(run.state.space).items():
        if kept["grid"][what] != now:
            message = f"{what}: the checkpoint has {said(kept['grid'][what])}, the file {said(now)}"
            yield Problem("checkpoint-differs", message, fix=fix)
    needed = {*run.simulation.buffers, *getattr(run.simulation.solver, "buffer", ())}
    for name in sorted(needed - set(kept["state"]["buffers"])):
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
