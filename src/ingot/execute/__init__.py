"""Program -> something that runs: `interpret` (torch), `kernel` (generated C++), `inductor`.

Here: executors, their status, batches and transients. Not here: files on disk that outlive the
process (package), checks of a user's call (runtime).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, get_args

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, raise_if
from ingot.execute.status import Criterion, Reason, Status, failures, require
from ingot.execute.transient import History, Transient
from ingot.keywords import check_keywords
from ingot.options import Backend, find_no_choice

if TYPE_CHECKING:
    from ingot.program import Program

__all__ = [
    "DEFAULT_BACKEND",
    "Backend",
    "Criterion",
    "Executor",
    "History",
    "Reason",
    "Status",
    "Transient",
    "executor",
    "failures",
    "require",
    "require_backend",
]


DEFAULT_BACKEND: Backend = "kernel"
"""What runs a model where nobody says."""


class Executor(Protocol):
    """A program that runs."""

    def __call__(self, inputs: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Sequence[Status]]:
        """Outputs `(*batch, *axes, *base)` of such inputs, and the status of every solve."""
        ...

    def transient(self, transient: Transient) -> History:
        """Many steps, histories rotated inside."""
        ...

    def arrange(self, transient: Transient) -> Callable[[], History]:
        """The same with all arrays laid out beforehand, to be run any number of times."""
        ...


def require_backend(backend: str) -> None:
    """Refuse what is no back end."""
    raise_if(find_no_choice("backend", backend, get_args(Backend)))


@check_keywords
def executor(
    program: "Program", backend: Backend = "interpret", dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Executor:  # fmt: skip
    """The program made ready to run: by torch, as generated C++, or as compiled graphs of torch.

    Lines that see all points run by torch, between segments that run points apart. What torch runs,
    runs where its inputs are; kernels run on the device they are compiled for, graphs on CPUs.
    """
    place = torch.device(device)
    require_backend(backend)
    if backend == "interpret":
        from ingot.execute.interpret import Interpreter

        return Interpreter(program, dtype=dtype)
    from ingot.program.boundaries import has_boundaries

    if backend == "inductor":
        if place.type != "cpu":
            told = f"the back end 'inductor' runs on CPUs, not on {place}"
            raise IngotError([Problem("wrong-device", told, None, "use the back end 'kernel'")])
        from ingot.execute.inductor import compile_parts as compile
    else:
        from ingot.execute.kernel import compile_kernels

        compile = partial(compile_kernels, device=place)
    if has_boundaries(program):
        from ingot.execute.segments import compile_segments

        return compile_segments(program, compile, dtype, place)
    (only,) = compile([program], dtype)
    return only
