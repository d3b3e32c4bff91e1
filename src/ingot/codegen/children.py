"""Compilers as child processes: what one costs in time, memory or crashes is a child's."""

import os
import subprocess
from collections.abc import Mapping, Sequence

from ingot.errors import IngotError, Problem
from ingot.platform import kill_group

__all__ = ["TIME_LIMIT", "run_child"]

TIME_LIMIT = 3600.0
"""Seconds; the largest that were compiled take some ten minutes."""


def run_child(
    command: Sequence[str], given: bytes = b"", *, limit: float = TIME_LIMIT,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[bytes]":  # fmt: skip
    """Run a compiler to its end, or end it and all that it has started after so many seconds."""
    try:
        started = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env=environment,
        )  # fmt: skip
    except OSError as error:
        message = f"'{command[0]}' cannot be run: {error.strerror}"
        raise IngotError([Problem("no-compiler", message, None, "install it anew")]) from None
    with started as process:
        try:
            out, told = process.communicate(given, timeout=limit)
        except BaseException as error:
            kill_group(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            message = f"{os.path.basename(command[0])} was ended after {limit:.0f} s"
            fix = (
                "compile a smaller model, or fewer derivatives; ingot run --backend interpret"
                " compiles nothing"
            )
            raise IngotError([Problem("compiler-failed", message, None, fix)]) from None
    return subprocess.CompletedProcess(command, process.returncode, out, told)
