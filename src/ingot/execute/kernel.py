"""Program -> generated C++: blocks of points in vector lanes, Newton inside, many steps a call."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ingot.errors import raise_if
from ingot.execute.batch import shape_of
from ingot.execute.build import NATIVE, built
from ingot.execute.cpp import source
from ingot.execute.gradients import lost_gradients
from ingot.execute.native import Arranged, Native, Solver
from ingot.execute.status import Status
from ingot.execute.transient import History, Transient
from ingot.program import Program
from ingot.program.passes import planned
from ingot.program.unroll import LIMIT

__all__ = ["Kernel"]


class Kernel:
    """Runs a program as native code."""

    def __init__(
        self, program: Program, *, dtype: torch.dtype = torch.float64, unroll_limit: int = LIMIT
    ) -> None:
        self.program = program
        self.plan = planned(program, unroll_limit)
        self.source = source(self.plan)
        real = "double" if dtype == torch.float64 else "float"
        library = built(self.source, (*NATIVE, f"-DINGOT_REAL={real}"))
        graph = program.graph
        self.native = Native(
            run=library.ingot_run_steps,
            lanes=library.ingot_lanes(),
            inputs=tuple(shape_of(v, graph) for v in program.inputs),
            hidden=tuple(
                (shape_of(p.variable, graph), p.value.data.detach().to(dtype))
                for p in program.parameters
            ),
            outputs=tuple(shape_of(v, graph) for v in program.outputs),
            solvers=tuple(Solver(f.solve.name, f.solve.newton) for f in self.plan.solves.values()),
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
