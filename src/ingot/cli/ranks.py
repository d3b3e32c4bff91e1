"""Ranks: a command -> processes that share its box; in each of them, which of them it is."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ingot.cli.flags import wrong_usage
from ingot.errors import IngotError, Problem
from ingot.platform import kill_group

if TYPE_CHECKING:
    from ingot.fields import World

__all__ = ["join_world", "start_ranks"]

GRACE = 5.0  # seconds for the others to end by themselves once a rank has failed
POLL = 0.05  # seconds between two looks at the processes


@contextmanager
def join_world(
    device: str, environment: Mapping[str, str] = os.environ
) -> "Iterator[World | None]":
    """This process among the ranks that --ranks or torchrun has started; none where it is alone."""
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= environment.keys():
        yield None
        return
    import torch
    import torch.distributed as dist

    from ingot.fields import World

    rank, count = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    local = int(environment.get("LOCAL_RANK", rank))
    on_gpu = (device or ("cuda" if torch.cuda.is_available() else "cpu")).startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(local % max(1, torch.cuda.device_count()))
    dist.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield World(rank, count, local)
    finally:
        dist.destroy_process_group()


def start_ranks(
    count: int, arguments: Sequence[str], folder: Path | None = None, *, quiet: bool = False
) -> str:
    """Run `ingot ARGUMENTS` by so many processes; an error where one of them fails.

    The first rank prints, or what it says is returned where `quiet`; what the others say is told
    where they fail first.
    """
    if count < 1:
        raise wrong_usage(f"--ranks {count} leaves no rank to run on", "give 1 or more")
    threads = max(1, (os.cpu_count() or 1) // count)
    common = {
        "OMP_NUM_THREADS": str(threads), **os.environ, "WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(find_port()),
    }  # fmt: skip
    with ExitStack() as stack:
        processes: list[subprocess.Popen[bytes]] = []
        logs: list[IO[bytes] | None] = []
        stack.callback(lambda: [end(each) for each in processes])
        for rank in range(count):
            told = rank == 0 and not quiet
            log = None if told else stack.enter_context(tempfile.TemporaryFile())
            processes.append(subprocess.Popen(
                [sys.executable, "-m", "ingot", *arguments], cwd=folder, start_new_session=True,
                env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdin=subprocess.DEVNULL, stdout=None if told else log, stderr=log,
            ))  # fmt: skip
            logs.append(log)
        raise_lost(processes, logs)
        return read_log(logs[0])


def read_log(log: IO[bytes] | None) -> str:
    """What a rank has said into a file."""
    if log is None:
        return ""
    log.seek(0)
    return log.read().decode(errors="replace").strip()


def find_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def raise_lost(
    processes: Sequence["subprocess.Popen[bytes]"], logs: Sequence[IO[bytes] | None]
) -> None:
    """Wait for all ranks; one that fails ends the others, and is told."""
    while True:
        codes = [each.poll() for each in processes]
        if any(codes):
            break
        if all(code == 0 for code in codes):
            return
        time.sleep(POLL)
    limit = time.monotonic() + GRACE
    while time.monotonic() < limit and any(each.poll() is None for each in processes):
        time.sleep(POLL)
    # others fail because one was lost: who was ended by a signal was it
    rank = min(range(len(codes)), key=lambda at: (not codes[at], (codes[at] or 0) > 0, at))
    said = read_log(logs[rank])
    raise IngotError([describe_loss(rank, len(processes), codes[rank] or 0, said)])


def describe_loss(rank: int, count: int, code: int, said: str) -> Problem:
    """Why the ranks ended."""
    how = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
    message = f"rank {rank} of {count} {how}, and the others with it"
    fix = "go on from the last checkpoint: ingot run FILE --restart FOLDER"
    return Problem("rank-lost", message + (f":\n{said}" if said else ""), fix=fix)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a rank that still runs, and what it has started."""
    if process.poll() is None:
        kill_group(process)
        process.wait()
