"""One rank of a world: runs every scenario of a folder, and stores the fields of the whole box.

Run as `python -m tests.fields.ranks_worker FOLDER` by `start_world`, which sets what torch reads.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ingot.errors import IngotError
from ingot.fields import COMPUTES, Grid, Space, World, build, compute, prepared
from ingot.fields.checkpoint import restore, store
from ingot.fields.jit import Jit
from ingot.fields.step import Eager
from ingot.hit import read_text


def LocalMean(field: Grid) -> Grid:
    """A field less what a rank takes for its mean.

    field: the field
    """
    return field - field.mean()


def BoxMean(field: Grid, space: Space) -> Grid:
    """A field less its mean.

    field: the field
    """
    return field - space.mean(field)


@contextmanager
def users_computes() -> Iterator[None]:
    """Know the computes of a user; tests that speak of every compute must not see them."""
    compute(LocalMean)
    compute(BoxMean)
    try:
        yield
    finally:
        for name in ("LocalMean", "BoxMean"):
            del COMPUTES[name]


def main() -> None:
    folder = Path(sys.argv[1])
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    with users_computes():
        for file in sorted(folder.glob("*.json")):
            run_scenario(
                json.loads(file.read_text()), file.with_suffix(""), World(rank, count, rank)
            )
    dist.destroy_process_group()


def run_scenario(scenario: dict, place: Path, world: World) -> None:
    """Run to the end, or go on from `restart`; store after `store_after` steps if it says so."""
    tree = read_text(scenario["text"], overrides=tuple(scenario["overrides"]), moose=True)
    place.mkdir(exist_ok=True)
    # an executor of no simulation stores all buffers, also those that nothing outside reads
    executor = Jit() if scenario.get("jit") else Eager()
    run = prepared(build(tree), place, world=world, executor=executor)
    if scenario.get("refused"):
        with pytest.raises(IngotError, match=scenario["refused"]):
            list(run.steps())
        return
    if scenario.get("restart"):
        restore(run, Path(scenario["restart"]))
    for now in run.steps():
        # twice, since the second takes the place of the first
        if scenario.get("store_after") in (now.number, now.number + 1):
            store(now, place / "run.checkpoint")
    share = run.state.space.share
    assert share is not None
    whole = {}
    for name in scenario["fields"]:
        value = run.state.buffers[name]
        whole[name] = share.gather(value, spectral=value.is_complex())
    if world.rank == 0:
        rows = [dict(row) for row in run.rows]
        torch.save({"fields": whole, "rows": rows, "times": run.times}, place / "result.pt")


def start_world(count: int, folder: Path) -> None:
    """Run all scenarios of a folder by so many processes."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
              "WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1",
              "PYTHONPATH": os.pathsep.join(sys.path)}  # fmt: skip
    command = [sys.executable, "-m", "tests.fields.ranks_worker", str(folder)]
    processes = [
        subprocess.Popen(command, env={**common, "RANK": str(rank)}, stderr=subprocess.PIPE)
        for rank in range(count)
    ]
    said = [each.communicate(timeout=1500)[1].decode() for each in processes]
    assert all(each.returncode == 0 for each in processes), "\n".join(said)


if __name__ == "__main__":
    main()
