"""Calls of a package's C functions, described by Python and made by a C program.

The program reads calls and writes what became of every array, so that nothing in Python stands
between a test and the C entry. Each array has memory of its own, of just its size.
"""

import os
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingot.options import Newton, knobs_of
from tests.packages import Made

Array = NDArray[np.floating]

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "NAME.h"
#define INPUTS NAME_inputs
#ifdef NAME_vjp
#define AGAINST NAME_outputs
#define PULLED NAME_adjoints
#define PULLED_SIZES NAME_adjoint_sizes
#else
#define AGAINST 0
#define PULLED 0
#define PULLED_SIZES {0}
#endif
#define FIRST_AGAINST (NAME_inputs + NAME_outputs + NAME_blocks)
#define ARRAYS (FIRST_AGAINST + AGAINST + PULLED)
static int64_t word(void) { int64_t x; if (fread(&x, 8, 1, stdin) != 1) exit(9); return x; }
static double number(void) { double x; if (fread(&x, 8, 1, stdin) != 1) exit(9); return x; }
/* Memory of just this size, `shift` bytes past where malloc aligns it. */
static char* memory(int64_t bytes, int64_t shift) {
  char* p = (char*)malloc((size_t)(bytes + shift ? bytes + shift : 1));
  return p + shift;
}
int main(void) {
  const int64_t sizes[5][64] = {NAME_input_sizes, NAME_output_sizes, NAME_block_sizes, NAME_output_sizes, PULLED_SIZES};
  const int64_t counts[5] = {NAME_inputs, NAME_outputs, NAME_blocks, AGAINST, PULLED};
  const int64_t parameter_sizes[] = NAME_parameter_sizes;
  for (int64_t calls = word(); calls > 0; --calls) {
    const int64_t which = word(), points = word(), room = points < 0 || points > 100000 ? 0 : points;
    (void)which; /* a package without derivatives has one function */
    const int64_t no_arrays = word(), status_mode = word(), has_parameters = word(), has_rules = word();
    char* own[ARRAYS + 1]; int64_t shifts[ARRAYS + 1], bytes[ARRAYS + 1];
    REAL* at[ARRAYS + 1];
    for (int i = 0; i < ARRAYS; ++i) {
      const int64_t mode = word(), a = word(), b = word();
      int64_t group = 0, place = i;
      while (place >= counts[group]) place -= counts[group++];
      bytes[i] = room * sizes[group][place] * (int64_t)sizeof(REAL);
      shifts[i] = mode == 2 ? a : 0;
      own[i] = memory(bytes[i], shifts[i]);
      memset(own[i], 0x5a, (size_t)bytes[i]);
      if ((group == 0 || group == 3) && bytes[i] && fread(own[i], (size_t)bytes[i], 1, stdin) != 1) return 9;
      at[i] = mode == 1 ? NULL : mode == 3 ? at[a] + b : (REAL*)(void*)own[i];
    }
    NAME_values parameters[NAME_parameters + 1]; char* held[NAME_parameters + 1]; int64_t moved[NAME_parameters + 1];
    for (int i = 0; i < NAME_parameters; ++i) {
      const int64_t mode = word(), count = word(), n = word() * parameter_sizes[i] * (int64_t)sizeof(REAL);
      moved[i] = mode == 2 ? 4 : 0;
      held[i] = memory(n, moved[i]);
      if (n && fread(held[i], (size_t)n, 1, stdin) != 1) return 9;
      parameters[i].data = mode ? (const REAL*)(const void*)held[i] : NULL;
      parameters[i].count = count;
    }
    NAME_rules rules[NAME_solves + 1];
    for (int s = 0; s < NAME_solves; ++s) { READ_RULES }
    const int64_t told = NAME_solves * room * (int64_t)sizeof(NAME_status);
    const int64_t shift = status_mode == 2 ? 1 : 0;
    char* status = memory(told, shift);
    memset(status, 0x5a, (size_t)told);
    const REAL* inputs[INPUTS + 1]; for (int i = 0; i < INPUTS; ++i) inputs[i] = at[i];
    NAME_status* reports = status_mode ? (NAME_status*)(void*)status : NULL;
    const NAME_values* chosen = has_parameters ? parameters : NULL;
    const NAME_rules* ruled = has_rules ? rules : NULL;
    int64_t done;
#ifdef NAME_vjp
    const REAL* against[AGAINST + 1]; for (int i = 0; i < AGAINST; ++i) against[i] = at[FIRST_AGAINST + i];
    if (which == 2)
      done = NAME_vjp(points, no_arrays & 1 ? NULL : inputs, chosen, ruled, no_arrays & 8 ? NULL : against,
                      no_arrays & 2 ? NULL : at + INPUTS, no_arrays & 4 ? NULL : at + FIRST_AGAINST + AGAINST, reports);
    else
#endif
#ifdef NAME_jacobian
    if (which == 1)
      done = NAME_jacobian(points, no_arrays & 1 ? NULL : inputs, chosen, ruled, no_arrays & 2 ? NULL : at + INPUTS,
                           no_arrays & 4 ? NULL : at + INPUTS + NAME_outputs, reports);
    else
#endif
      done = NAME_forward(points, no_arrays & 1 ? NULL : inputs, chosen, ruled, no_arrays & 2 ? NULL : at + INPUTS, reports);
    fwrite(&done, 8, 1, stdout);
    for (int i = 0; i < ARRAYS; ++i) { fwrite(own[i], 1, (size_t)bytes[i], stdout); free(own[i] - shifts[i]); }
    for (int i = 0; i < NAME_parameters; ++i) free(held[i] - moved[i]);
    fwrite(status, 1, (size_t)told, stdout);
    free(status - shift);
  }
  return 0;
}
"""  # noqa: E501

OWN, NULL, SHIFTED, ALIAS = range(4)


@dataclass(frozen=True)
class Place:
    """Where an array lies: in memory of its own, nowhere, or numbers past the start of another."""

    mode: int = OWN
    a: int = 0
    b: int = 0


@dataclass
class CCall:
    """One call. arrays: places of inputs, outputs, blocks, cotangents and adjoints; values: what
    inputs hold; against: what cotangents hold, zero where nothing is said.
    """

    points: int
    values: list[Array]
    arrays: list[Place]
    jacobian: bool = True
    vjp: bool = False
    against: list[Array] | None = None
    no_arrays: int = 0
    status: int = 1
    parameters: list[tuple[int, int, Array]] | None = None
    rules: list[dict[str, float]] | None = None
    wrong: set[str] = field(default_factory=set)
    """The errors that this call may be told of; none: it is lawful."""

    @property
    def room(self) -> int:
        """How many points the arrays of the program have."""
        return self.points if 0 <= self.points <= 100000 else 0


@dataclass(frozen=True)
class CResult:
    """What a call returned, and all arrays after it."""

    returned: int
    arrays: list[Array]
    status: NDArray[np.void]


class CProgram:
    """The driver, compiled against a package: its library, or its source under a sanitizer."""

    def __init__(self, one: Made, folder: Path, *flags: str) -> None:
        self.one, self.meta = one, one.package.metadata
        kernel = self.meta.kernel
        assert kernel is not None
        self.real = np.dtype(self.meta.dtype)
        name = kernel.prefix.rpartition("_")[0]
        text = DRIVER.replace("NAME", name).replace(
            "REAL", "double" if self.real.itemsize == 8 else "float"
        )
        knobs = knobs_of(Newton)
        read = " ".join(f"rules[s].{k.name} = ({k.c_type})number();" for k in knobs)
        (folder / "driver.c").write_text(text.replace("READ_RULES", read))
        checked = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{one.folder}"]
        subprocess.run(
            ["gcc", *checked, *flags, "-c", "driver.c", "-o", "driver.o"], cwd=folder, check=True
        )
        if flags:
            target = ["driver.o", *self._compiled(folder, *flags)]
        else:
            target = ["driver.o", str(one.folder / next(iter(kernel.libraries.values())))]
        subprocess.run(["g++", *flags, *target, "-o", "driver"], cwd=folder, check=True)
        self.command = folder / "driver"

    def _compiled(self, folder: Path, *flags: str) -> list[str]:
        kernel = self.meta.kernel
        assert kernel is not None
        source = str(self.one.folder / kernel.source)
        how = ["-std=c++17", "-O1", "-fno-math-errno", "-ffp-contract=off", "-Wno-psabi"]
        subprocess.run(
            ["g++", *how, "-march=x86-64-v3", *flags, "-c", source, "-o", "package.o"],
            cwd=folder, check=True,
        )  # fmt: skip
        return ["package.o"]

    @property
    def sizes(self) -> list[int]:
        """Numbers a point of inputs, outputs and blocks, cotangents and adjoints."""
        known = {v.name: v.size for v in self.meta.inputs}
        known |= {p.variable.name: p.variable.size for p in self.meta.parameters}
        outs = {v.name: v.size for v in self.meta.outputs}
        blocks = [outs[b.output] * known[b.input] for b in self.meta.derivatives]
        adjoints = [*outs.values(), *known.values()] if self.meta.adjoints else []
        return [*(v.size for v in self.meta.inputs), *outs.values(), *blocks, *adjoints]

    @property
    def cotangents(self) -> range:
        """The places of cotangents among the arrays; adjoints stand behind them."""
        first = len(self.meta.inputs) + len(self.meta.outputs) + len(self.meta.derivatives)
        return range(first, first + (len(self.meta.outputs) if self.meta.adjoints else 0))

    def active(self, call: CCall) -> list[int]:
        """The places of arrays that a call reads or writes."""
        values = range(len(self.meta.inputs) + len(self.meta.outputs))
        if call.vjp:
            return [*values, *range(self.cotangents.start, len(self.sizes))]
        return [*range(self.cotangents.start)] if call.jacobian else [*values]

    def __call__(self, calls: Sequence[CCall]) -> list[CResult]:
        """Make the calls, one after another; the program must end as it should."""
        text = struct.pack("q", len(calls)) + b"".join(map(self._packed, calls))
        loud = {
            "ASAN_OPTIONS": "detect_leaks=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        }
        done = subprocess.run(
            [self.command], input=text, capture_output=True, check=False, env={**os.environ, **loud}
        )
        assert done.returncode == 0, done.stderr.decode()
        return self._results(calls, done.stdout)

    def _packed(self, call: CCall) -> bytes:
        head = (
            2 if call.vjp else int(call.jacobian), call.points, call.no_arrays, call.status,
            call.parameters is not None, call.rules is not None,
        )  # fmt: skip
        parts = [struct.pack("6q", *head)]
        for i, place in enumerate(call.arrays):
            parts.append(struct.pack("3q", place.mode, place.a, place.b))
            if i < len(self.meta.inputs):
                parts.append(np.ascontiguousarray(call.values[i], self.real).tobytes())
            elif i in self.cotangents:
                parts.append(np.ascontiguousarray(self.against(call, i), self.real).tobytes())
        none = [(0, 1, np.empty(0))] * len(self.meta.parameters)
        sizes = [p.variable.size for p in self.meta.parameters]
        for (mode, count, values), size in zip(call.parameters or none, sizes, strict=True):
            parts.append(struct.pack("3q", mode, count, values.size // size))
            parts.append(np.ascontiguousarray(values, self.real).tobytes())
        for rule in call.rules or [{k.name: 0.0 for k in knobs_of(Newton)}] * len(
            self.meta.solvers
        ):
            parts += [struct.pack("d", rule[k.name]) for k in knobs_of(Newton)]
        return b"".join(parts)

    def against(self, call: CCall, place: int) -> Array:
        """What a cotangent holds."""
        if call.against is None:
            return np.zeros(call.room * self.sizes[place])
        return call.against[place - self.cotangents.start]

    def _results(self, calls: Sequence[CCall], text: bytes) -> list[CResult]:
        status = np.dtype(
            [("reason", "i1"), ("iterations", "i4"), ("residual", self.real), ("pivoted", "i4")],
            align=True,
        )
        at, found = 0, []

        def taken(dtype: "np.dtype[np.void] | str", count: int) -> NDArray[np.void]:
            nonlocal at
            part = np.frombuffer(text, dtype, count, at)
            at += part.nbytes
            return part

        for call in calls:
            (returned,) = taken("q", 1)
            arrays = [taken(self.real, call.room * size) for size in self.sizes]
            told = taken(status, call.room * len(self.meta.solvers))
            found.append(CResult(int(returned), arrays, told))
        assert at == len(text)
        return found
