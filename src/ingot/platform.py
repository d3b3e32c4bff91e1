"""What differs between operating systems, CPUs and compilers: no other file asks which it is on."""

import ctypes
import os
import platform
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = [
    "FOLDERS_CAN_BE_OPENED", "MACHINE", "choose_native_flags", "exchange_names", "find_in_process",
    "kill_group", "lock_file", "read_processor_features",
]  # fmt: skip

MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
"""The family of the CPU, by one name on all systems."""

FOLDERS_CAN_BE_OPENED = os.name != "nt"
"""Whether a folder can be opened, and so be locked, as files can."""

_HERE = -100  # AT_FDCWD of Linux
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux


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
