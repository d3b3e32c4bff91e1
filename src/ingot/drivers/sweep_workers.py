"""Parts of a sweep handed to workers: processes of this machine, or a Ray cluster."""

import logging
import os
import queue
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ingot.errors import IngotError, Problem
from ingot.runtime.sweep_part import PLAN, Planned, Rows, compute_part, open_plan
from ingot.runtime.sweep_store import put_part

__all__ = ["Done", "work_here", "work_on_ray"]

TRIES = 5
"""How many workers may die at one part before the sweep gives up: a part may well kill them all."""
IN_FLIGHT = 4
"""Parts handed out to a core of a cluster at once, so that none waits for the head."""

Done = Callable[[int], None]
"""Told the number of each part that is in the data set."""


def work_here(planned: Planned, parts: Sequence[int], workers: int, done: Done) -> None:
    """Compute parts by this process, or by several of this machine.

    A part whose worker died is given to another.
    """
    from ingot.graphs.child import Children

    if workers == 1:
        for number in parts:
            put_part(planned, number, compute_part(planned, number))
            done(number)
        return

    cores = max((os.cpu_count() or 1) // workers, 1)
    environment = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(cores))}
    children = Children("worker-failed", "a worker could not compute", environment)
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in parts:
        waiting.put(number)
    failed: list[IngotError] = []

    def work() -> None:
        while not failed:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                _compute_here(children, planned, number)
                done(number)
            except IngotError as error:
                failed.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        children.close()
    if failed:
        raise failed[0]


def _compute_here(children: Any, planned: Planned, number: int) -> None:
    from ingot.graphs.child import LostChildError

    what, fix = f"part {number} of {planned.plan.parts}", "cut it smaller with --part"
    for tried in range(TRIES):
        try:
            children.run(
                "ingot.runtime.sweep_part:make_part", planned.folder / str(number), what, fix
            )
            return
        except LostChildError:
            if tried == TRIES - 1:
                raise


def work_on_ray(planned: Planned, parts: Sequence[int], address: str | None, done: Done) -> None:
    """Compute parts on a Ray cluster; Ray gives a part whose worker died to another.

    address: of the cluster, or None for one that is started on this machine. A worker that sees the
    data set's folder writes into it; what others compute travels to this process, which writes it.
    """
    try:
        import ray
    except ModuleNotFoundError:
        told, fix = "--ray needs Ray, which is not installed", "pip install 'ingot[scale]'"
        raise IngotError([Problem("not-installed", told, None, fix)]) from None
    began = not ray.is_initialized()
    if began:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        _hand_out(ray, planned, parts, done)
    finally:
        if began:
            ray.shutdown()


def _hand_out(ray: Any, planned: Planned, parts: Sequence[int], done: Done) -> None:
    files = ray.put(_pack(planned.folder))
    task = ray.remote(num_cpus=1, max_retries=TRIES)(_compute_there)
    cores = max(int(ray.cluster_resources().get("CPU", 1)), 1)
    waiting, flying = iter(parts), {}
    while True:
        for number in waiting:
            flying[task.remote(files, str(planned.folder), planned.plan.digest, number)] = number
            if len(flying) >= IN_FLIGHT * cores:
                break
        if not flying:
            return
        ready, _ = ray.wait(list(flying), num_returns=1)
        number = flying.pop(ready[0])
        try:
            rows: Rows | None = ray.get(ready[0])
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, IngotError):
                raise cause from None
            raise _tell_lost(planned, number, cause) from None
        except ray.exceptions.RayError as error:
            raise _tell_lost(planned, number, error) from None
        if rows is not None:
            put_part(planned, number, rows)
        done(number)


def _tell_lost(planned: Planned, number: int, why: object) -> IngotError:
    told = f"a worker could not compute part {number} of {planned.plan.parts}: {why}"
    return IngotError([Problem("worker-failed", told, None, "cut it smaller with --part")])


def _pack(folder: Path) -> dict[str, bytes]:
    """The files of a plan, for machines that do not see its folder."""
    found = (p for p in folder.rglob("*") if p.is_file() and p.parent.name != "done")
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


def _compute_there(files: dict[str, bytes], folder: str, digest: str, number: int) -> Rows | None:
    """What a worker of a cluster does; None where it has written the part itself."""
    place = Path(folder)
    if (place / PLAN).exists() and open_plan(place).plan.digest == digest:
        planned = open_plan(place)
        put_part(planned, number, compute_part(planned, number))
        return None
    if digest not in _UNPACKED:
        _UNPACKED.clear()  # one sweep at a time
        _UNPACKED[digest] = held = tempfile.TemporaryDirectory(prefix="ingot-")
        for name, content in files.items():
            file = Path(held.name) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return compute_part(open_plan(Path(_UNPACKED[digest].name)), number)


_UNPACKED: dict[str, "tempfile.TemporaryDirectory[str]"] = {}
"""The plan that this worker was sent, by its digest, as long as the worker lives."""
