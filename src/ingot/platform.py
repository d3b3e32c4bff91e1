"""What differs between operating systems, CPUs and compilers: no other file asks which it is on."""

import ctypes
import itertools
import os
import platform
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = [
    "FOLDERS_CAN_BE_OPENED", "MACHINE", "choose_native_flags", "exchange_names", "find_in_process",
    "kill_group", "lock_file", "read_free_memory", "read_processor_features",
]  # fmt: skip

MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
"""The family of the CPU, by one name on all systems."""

FOLDERS_CAN_BE_OPENED = os.name != "nt"
"""Whether a folder can be opened, and so be locked, as files can."""

_HERE = -100  # AT_FDCWD of Linux
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux
_GROUP = Path("/sys/fs/cgroup")
_CACHED = ("inactive_file", "active_file")


def choose_native_flags(machine: str = MACHINE) -> tuple[str, ...]:
    """The compiler's flags for the very CPU that it runs on."""
    if machine == "x86_64":
        # compilers keep to 256 bits by themselves, where lanes are 512 wide
        return ("-march=native", "-mprefer-vector-width=512")
    return ("-mcpu=native",)


def read_processor_features() -> frozenset[str]:
    """The instruction sets of the CPU in Linux's words; none where the system does not tell."""
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    line = next((row for row in text.splitlines() if row.startswith(("flags", "Features"))), "")
    return frozenset(line.partition(":")[2].split())


def read_free_memory() -> int | None:
    """The bytes that processes can still be given, with swap; None where the system does not tell.

    A group of processes that is bound (a container, a job) has no more than its bound leaves.
    """
    info = Path("/proc/meminfo")
    text = info.read_text() if info.exists() else ""
    rows = {row.partition(":")[0]: row.split()[1:2] for row in text.splitlines()}
    found = [rows[name] for name in ("MemAvailable", "SwapFree") if rows.get(name)]
    free = sum(1024 * int(count) for (count,) in found) if "MemAvailable" in rows else None
    bounds = (("memory.max", "memory.current"),
              ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))  # fmt: skip
    for bound, used in bounds:
        with suppress(OSError, ValueError):
            most, now = (int((_GROUP / name).read_text()) for name in (bound, used))
            stat = (_GROUP / bound).with_name("memory.stat").read_text().split()
            # what files have in memory is given up where it is needed
            now -= sum(int(n) for name, n in itertools.pairwise(stat) if name in _CACHED)
            free = max(0, most - now) if free is None else min(free, max(0, most - now))
    return free


def lock_file(number: int, *, wait: bool) -> bool:
    """Lock an open file; false where another holds it and this is not to wait.

    Where the system or the file system has no locks the file is taken to be free.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def exchange_names(a: Path, b: Path) -> bool:
    """Swap two names in one step, so that no moment shows neither; false where nothing can."""
    swap = find_in_process("renameat2")
    return swap is not None and not swap(_HERE, os.fsencode(a), _HERE, os.fsencode(b), _EXCHANGE)


def find_in_process(name: str) -> Any:
    """A function of the libraries that this process has loaded already, or None."""
    try:
        return getattr(ctypes.CDLL(None, use_errno=True), name)
    except (AttributeError, OSError, TypeError):  # not there; Windows has no such place
        return None


def kill_group(process: "subprocess.Popen[Any]") -> None:
    """End a process that leads a session of its own, and all that it has started."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
