"""Program -> generated C++: blocks of points in vector lanes, Newton inside, many steps a call."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ingot.codegen.build import NATIVE_FLAGS, load_library
from ingot.codegen.cuda import load_functions
from ingot.codegen.frames import LANES, THREADS, count_rows, write_definitions
from ingot.codegen.source import write_entries, write_section, write_unit
from ingot.codegen.values import SharedDefinitions
from ingot.errors import raise_if
from ingot.execute.autograd_guard import find_lost_gradients
from ingot.execute.batch_shape import find_slopes, shape_of
from ingot.execute.call_layout import CPU
from ingot.execute.kernel_cuda import open_device_runners
from ingot.execute.kernel_run import (
    KernelEntry,
    KernelTransient,
    open_native_runners,
)
from ingot.execute.status import Status, spoil_slopes
from ingot.execute.transient import History, Transient
from ingot.program import Choices, Program, compile_passes
from ingot.program.pipeline import DEFAULT

__all__ = ["Kernel", "compile_kernels"]

_PREFIX = "ingot"
"""What the names of functions begin with that belong to no package."""


class Kernel:
    """Runs a program as native code.

    library: one that holds the program among others, under the name of `entry`.
    """

    def __init__(
        self, program: Program, *, dtype: torch.dtype = torch.float64,
        choices: Choices = DEFAULT, library: "_Library | None" = None, entry: str = "run",
        device: torch.device = CPU,
    ) -> None:  # fmt: skip
        if library is None:
            library = _Library({entry: compile_passes(program, choices)}, dtype, device)
        self.program = program
        self.compiled = library.compiled[entry]
        self.source = library.source
        self.slopes = find_slopes(program)
        self.entry = KernelEntry(
            run=library.runners.open(entry, count_rows(self.compiled)),
            inputs=tuple(shape_of(v, program) for v in program.inputs),
            hidden=tuple(
                (shape_of(p.variable, program), p.value.data.detach().to(dtype))
                for p in program.parameters
            ),
            outputs=tuple(shape_of(v, program) for v in program.outputs),
            solvers=tuple((s.name, s.newton) for s in self.compiled.solves),
            dtype=dtype,
        )

    def __call__(self, inputs: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Sequence[Status]]:
        """The outputs `(*batch, *axes, *base)` and the status of every solve."""
        raise_if(find_lost_gradients(inputs, "a kernel"))
        outputs, statuses = self.entry(inputs)
        return spoil_slopes(outputs, statuses, self.slopes), statuses

    def transient(self, transient: Transient) -> History:
        """All steps in one native call; step 0 is taken as given."""
        return self.arrange(transient)()

    def arrange(self, transient: Transient) -> KernelTransient:
        """The transient with its arrays laid out, to be run any number of times."""
        raise_if(find_lost_gradients({**transient.prescribed, **transient.initial}))
        return KernelTransient(self.entry, transient)


class _Library:
    """Programs that went through all passes, compiled as one translation unit for a device."""

    def __init__(
        self, compiled: Mapping[str, Program], dtype: torch.dtype, device: torch.device
    ) -> None:
        self.compiled = compiled
        frame = THREADS if device.type == "cuda" else LANES
        shared = SharedDefinitions()
        real = "double" if dtype == torch.float64 else "float"
        sections = [
            write_section(p, entry, shared=shared, frame=frame) for entry, p in compiled.items()
        ]
        if frame is THREADS:
            self.source = f"{write_definitions(real, _PREFIX)}{write_unit(sections, frame)}"
            find = load_functions(self.source, device, frame.read_headers())
            self.runners = open_device_runners(find, _PREFIX, device)
        else:
            self.source = write_unit([*sections, write_entries(_PREFIX, [*compiled])])
            native = load_library(self.source, (*NATIVE_FLAGS, f"-DINGOT_REAL={real}"))
            self.runners = open_native_runners(native, _PREFIX)


def compile_kernels(
    programs: Sequence[Program], dtype: torch.dtype = torch.float64, device: torch.device = CPU
) -> Sequence[Kernel]:
    """Kernels that one run of the compiler makes, for parts of one whole."""
    names = ["run", *(f"run_{i}" for i in range(1, len(programs)))]
    compiled = {n: compile_passes(p) for n, p in zip(names, programs, strict=True)}
    library = _Library(compiled, dtype, device)
    return [
        Kernel(p, dtype=dtype, library=library, entry=n)
        for n, p in zip(names, programs, strict=True)
    ]
