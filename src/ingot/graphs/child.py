"""Work in child processes: a folder goes in, files in it come out.

A crash of torch or g++, memory that runs out and work without end cost a child, never this process.
"""

import atexit
import importlib
import json
import logging
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from ingot.codegen.children import TIME_LIMIT
from ingot.codegen.disk import raise_if_full
from ingot.errors import IngotError, Problem
from ingot.graphs import torch_private
from ingot.platform import kill_group

__all__ = ["TIME_LIMIT", "Children", "LostChildError", "main", "share_children"]

IDLE = 60.0  # seconds after which a child without work ends: it holds some 400 MB
TOLD_EVERY = 20.0  # seconds between two lines of the log

logger = logging.getLogger("ingot")


@dataclass(slots=True)
class _Child:
    process: "subprocess.Popen[str]"
    log: IO[bytes]
    used: bool = False

    def kill(self) -> None:
        """End it, and the compilers that are at work for it."""
        kill_group(self.process)
        self.process.wait()

    def read_log(self) -> str:
        """The end of what it has written."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-2000:].strip()


class LostChildError(IngotError):
    """A child died at its job, which another may well do."""


class Children:
    """Processes that do one job at a time each, started as threads ask for them.

    code, failing: how it is told that they failed, the job's name after it; environment: of them.
    """

    def __init__(
        self, code: str = "compiler-failed", failing: str = "torch could not compile",
        environment: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._code, self._failing = code, failing
        self._environment = dict(environment or {})
        self._idle: queue.SimpleQueue[_Child] = queue.SimpleQueue()
        self._all: list[_Child] = []
        self._ended = False

    def close(self) -> None:
        """End all; jobs that they are at fail."""
        self._ended = True
        for child in self._all:
            child.kill()

    def run(
        self, work: str, folder: Path, what: str, fix: str, limit: float = TIME_LIMIT
    ) -> tuple[float, float]:
        """Have `module:function` called with a folder; the seconds, and those of the processor."""
        child, line = self._take(), ""
        try:
            line = _converse(child, json.dumps([work, str(folder)]), what, limit)
            if not line and child.used and child.process.wait() == 0:  # it ended for lack of work
                child = self._start()
                line = _converse(child, json.dumps([work, str(folder)]), what, limit)
        finally:
            if not line:
                child.kill()
        if line == "late":
            child.kill()
            told = f"it took longer than {limit:g} s"
            raise IngotError(self._tell(what, told, "raise time_limit, or " + fix))
        if not line:
            said = child.read_log()
            raise_if_full(said)
            told = f"{_explain_end(child.process.returncode)}\n{said}".rstrip()
            raise LostChildError(self._tell(what, told, fix))
        child.used = True
        self._idle.put(child)
        verdict = json.loads(line)
        if verdict["problems"]:
            raise IngotError([Problem(c, told, None, f) for c, told, f in verdict["problems"]])
        if verdict["error"]:
            logger.debug(verdict["trace"])
            raise_if_full(verdict["trace"])
            raise IngotError(self._tell(what, verdict["error"], fix))
        return verdict["wall"], verdict["busy"]

    def _tell(self, what: str, why: str, fix: str) -> list[Problem]:
        return [Problem(self._code, f"{self._failing} {what}: {why}", None, fix)]

    def _take(self) -> _Child:
        try:
            child = self._idle.get_nowait()
        except queue.Empty:
            child = self._start()
        if self._ended:
            child.kill()
        return child

    def _start(self) -> _Child:
        log = tempfile.TemporaryFile(prefix="ingot-")  # noqa: SIM115 as long as the child
        environment = {**os.environ, **torch_private.CHILD_ENVIRONMENT, **self._environment}
        # the same Ingot as here, wherever it was imported from
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        process = subprocess.Popen(
            [sys.executable, "-c", "from ingot.graphs.child import main; main()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env=environment, start_new_session=True,
        )  # fmt: skip
        child = _Child(process, log)
        self._all = [*(c for c in self._all if c.process.poll() is None), child]
        return child


def share_children() -> Children:
    """Those of this process, which end with it; a fork has its own."""
    return _share(os.getpid())


@cache
def _share(pid: int) -> Children:
    children = Children()
    # a fork ends without those of its parent
    atexit.register(lambda: children.close() if pid == os.getpid() else None)
    return children


def _converse(child: _Child, job: str, what: str, limit: float) -> str:
    """The line that a child answers; "" where it died, "late" where it takes too long."""
    begun = time.monotonic()
    stdin, stdout = child.process.stdin, child.process.stdout
    assert stdin is not None and stdout is not None
    try:
        stdin.write(f"{job}\n")
        stdin.flush()
    except BrokenPipeError:
        return ""
    while (spent := time.monotonic() - begun) < limit:
        if select.select([stdout], [], [], min(TOLD_EVERY, limit - spent))[0]:
            return stdout.readline()
        logger.info("%s: at work for %.0f s", what, time.monotonic() - begun)
    return "late"


def _explain_end(code: int) -> str:
    if code >= 0:
        return f"its process ended with {code}"
    name = signal.Signals(-code).name
    memory = "; memory may have run out" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{memory}"


# in the child


def main() -> None:
    """Do what standard input names, a line each, until it ends or is silent."""
    # what torch and g++ say must not be taken for a verdict
    verdicts = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    while select.select([sys.stdin], [], [], IDLE)[0]:
        line = sys.stdin.readline()
        if not line:
            return
        begun = time.perf_counter(), _processor_seconds()
        said: dict[str, Any] = {"problems": [], "error": None}
        try:
            work, folder = json.loads(line)
            module, _, name = work.partition(":")
            getattr(importlib.import_module(module), name)(Path(folder))
        except IngotError as error:
            said["problems"] = [(p.code, p.message, p.fix) for p in error.problems]
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            said |= {"error": told, "trace": traceback.format_exc()}
        said |= {"wall": time.perf_counter() - begun[0], "busy": _processor_seconds() - begun[1]}
        verdicts.write(json.dumps(said) + "\n")
        verdicts.flush()


def _processor_seconds() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])
