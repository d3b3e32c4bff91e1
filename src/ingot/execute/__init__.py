"""Program -> something that runs: `interpret` (torch), `kernel` (generated C++), `inductor`.

Here: executors, their status, batches and transients. Not here: files on disk that outlive the
process (package), checks of a user's call (runtime).
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from ingot.execute.status import Criterion, Reason, Status, failures, require
from ingot.execute.transient import History, Transient
from ingot.options import Backend

if TYPE_CHECKING:
    from ingot.program import Program

__all__ = [
    "Backend",
    "Criterion",
    "Executor",
    "History",
    "Reason",
    "Status",
    "Transient",
    "choose_backend",
    "executor",
    "failures",
    "require",
]


class Executor(Protocol):
    """A program that runs."""

    def __call__(
        self, inputs: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """Outputs `(*batch, *axes, *base)` of such inputs, and the status of every solve."""
        ...

    def transient(self, transient: Transient) -> History:
        """Many steps, histories rotated inside."""
        ...

    def arranged(self, transient: Transient) -> Callable[[], History]:
        """The same with all arrays laid out beforehand, to be run any number of times."""
        ...


def choose_backend(program: "Program") -> Backend:
    """What runs a program where nobody says: the kernel, if it holds every line."""
    from ingot.program.opaque import find_misplaced

    found = find_misplaced(program, "a kernel")
    for problem in found:
        logging.getLogger("ingot").warning("the model runs by interpret: %s", problem.message)
    return "interpret" if found else "kernel"


def executor(
    program: "Program", backend: Backend = "interpret", dtype: torch.dtype = torch.float64
) -> Executor:
    """The program made ready to run: by torch, as generated C++, or as compiled graphs of torch."""
    if backend == "interpret":
        from ingot.execute.interpret import Interpreter

        return Interpreter(program, dtype=dtype)
    if backend == "inductor":
        from ingot.execute.inductor import compile_graphs

        return compile_graphs(program, dtype)
    from ingot.execute.kernel import Kernel

    return Kernel(program, dtype=dtype)
