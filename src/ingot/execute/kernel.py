"""Program -> generated C++: blocks of points in vector lanes, Newton inside, many steps a call."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ingot.errors import raise_if
from ingot.execute.autograd_guard import lost_gradients
from ingot.execute.batch_shape import shape_of
from ingot.execute.cxx_build import NATIVE, built
from ingot.execute.cxx_source import source
from ingot.execute.kernel_run import Arranged, Native, Solver
from ingot.execute.status import Status
from ingot.execute.transient import History, Transient
from ingot.program import Choices, Program, compile_passes
from ingot.program.pipeline import DEFAULT

__all__ = ["Kernel"]


class Kernel:
    """Runs a program as native code."""

    def __init__(
        self, program: Program, *, dtype: torch.dtype = torch.float64,
        choices: Choices = DEFAULT,
    ) -> None:  # fmt: skip
        self.program = program
        self.compiled = compile_passes(program, choices)
        self.source = source(self.compiled)
        real = "double" if dtype == torch.float64 else "float"
        library = built(self.source, (*NATIVE, f"-DINGOT_REAL={real}"))
        self.native = Native(
            run=library.ingot_run_steps,
            lanes=library.ingot_lanes(),
            inputs=tuple(shape_of(v, program) for v in program.inputs),
            hidden=tuple(
                (shape_of(p.variable, program), p.value.data.detach().to(dtype))
                for p in program.parameters
            ),
            outputs=tuple(shape_of(v, program) for v in program.outputs),
            solvers=tuple(Solver(s.name, s.newton) for s in self.compiled.solves),
            dtype=dtype,
        )

    def __call__(
        self, inputs: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """The outputs `(*batch, *axes, *base)` and the status of every solve."""
        raise_if(lost_gradients(inputs, "a kernel"))
        return self.native(inputs)

    def transient(self, transient: Transient) -> History:
        """All steps in one native call; step 0 is taken as given."""
        return self.arranged(transient)()

    def arranged(self, transient: Transient) -> Arranged:
        """The transient with its arrays laid out, to be run any number of times."""
        raise_if(lost_gradients({**transient.prescribed, **transient.initial}))
        return Arranged(self.native, transient)
