"""What is printed for GPUs gives what kernels of CPUs give, to the accuracy of exp and pow.

It is tried without a GPU: the same text is compiled as C++, and its threads run one by one.
"""

import re
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.codegen import nvrtc
from ingot.codegen.frames import THREADS
from ingot.codegen.source import write_section, write_unit
from ingot.drivers import TransientDriver, build_driver
from ingot.errors import IngotError
from ingot.execute import Transient, kernel, kernel_cuda
from ingot.execute.kernel import Kernel
from ingot.hit import read
from ingot.program import Program, compile_passes, with_adjoint, with_jacobian
from tests.codegen.on_host import load_on_host
from tests.compositions import NESTED
from tests.execute.test_substeps import CUBIC
from tests.systems import filled, plasticity, program_of, viscoplasticity

CASES = Path(__file__).parents[3] / "shared" / "cases" / "neml2" / "regression"
CRYSTAL = Path(__file__).parents[2] / "examples" / "crystal.i"
TEXTS = {
    "plastic": plasticity("FBComplementarity", isotropic=True, kinematic=True),
    "viscous": viscoplasticity(),
}


@pytest.fixture
def on_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of GPUs, run by this process."""

    def load(source: str, device: torch.device, headers: Mapping[str, str]) -> object:
        return load_on_host(source, ["ingot_run"], tmp_path, headers).__getitem__

    monkeypatch.setattr(kernel, "load_functions", load)
    monkeypatch.setattr(kernel_cuda, "raw_stream", lambda index: 0)


def drawn(program: Program, points: int, size: float = 0.01) -> dict[str, Tensor]:
    """Inputs at random, small as strains are."""
    make = torch.Generator().manual_seed(3)
    found = {}
    for v in program.inputs:
        shape = (points, *(program.extent(a) for a in v.axes), *v.kind.base)
        found[v.name] = size * torch.randn(shape, generator=make, dtype=torch.float64)
        if v.name.startswith("t"):
            found[v.name] = found[v.name].abs() + ("~" not in v.name)
    return found


@pytest.mark.parametrize("what", ["values", "jacobian", "adjoint"])
@pytest.mark.parametrize("name", TEXTS)
def test_threads_give_what_lanes_give(name: str, what: str, on_host: None) -> None:
    program = program_of(TEXTS[name])
    if what == "jacobian":
        program = with_jacobian(
            program, [(o.name, i.name) for o in program.outputs for i in program.inputs]
        )
    elif what == "adjoint":
        program = with_adjoint(
            program, [v.name for v in program.outputs], [v.name for v in program.inputs]
        )
    inputs = drawn(program, 300)
    wanted, told = Kernel(program)(inputs)
    found, status = Kernel(program, device=torch.device("cuda"))(inputs)
    sizes = {n: float(x.nan_to_num().abs().max()) for n, x in wanted.items()}
    noise = 1e-13 * max(sizes.values())  # what is zero but for rounding
    for n, x in wanted.items():
        close = {"rtol": 0, "atol": 1e-9 * sizes[n] + noise, "equal_nan": True}
        torch.testing.assert_close(found[n], x, **close)
    for ours, theirs in zip(status, told, strict=True):
        assert torch.equal(ours.reason, theirs.reason)
        assert torch.equal(ours.iterations, theirs.iterations)
        assert torch.equal(ours.pivoted, theirs.pivoted)


def test_a_call_like_the_last_gives_what_the_first_gave(on_host: None) -> None:
    program = program_of(TEXTS["viscous"])
    inputs, others = drawn(program, 300), drawn(program, 300, 0.02)
    run = Kernel(program, device=torch.device("cuda"))
    first, told = run(inputs)
    for _ in range(3):  # the third finds its task by guards
        between, _ = run(others)
        found, status = run({n: x.clone() for n, x in inputs.items()})
        assert all(torch.equal(found[n], x) for n, x in first.items())
        assert not all(torch.equal(between[n], x) for n, x in first.items())
        assert torch.equal(status[0].iterations, told[0].iterations)


def test_tensors_elsewhere_than_the_kernel_are_refused() -> None:
    program = program_of(TEXTS["viscous"])
    inputs = drawn(program, 3)
    moved = {n: x.to("meta") for n, x in inputs.items()}
    with pytest.raises(IngotError, match="is on meta, and the kernel runs on cpu"):
        Kernel(program)(moved)


def test_a_transient_on_threads_gives_what_lanes_give(on_host: None) -> None:
    program = program_of(TEXTS["viscous"])
    inputs = drawn(program, 130)
    times = torch.linspace(0, 1, 9, dtype=torch.float64)
    given = {n: times.reshape(-1, *(1,) * x.ndim) * x for n, x in inputs.items() if "~" not in n}
    transient = Transient(9, given, {})
    wanted = Kernel(program).transient(transient)
    found = Kernel(program, device=torch.device("cuda")).transient(transient)
    for n, x in wanted.outputs.items():
        torch.testing.assert_close(found.outputs[n], x, rtol=1e-9, atol=1e-12, equal_nan=True)
    assert torch.equal(found.statuses[0].iterations, wanted.statuses[0].iterations)


def test_values_that_are_spilled_come_back(on_host: None) -> None:
    """A crystal has more values alive than a thread has registers."""
    driver = build_driver(read(CRYSTAL, ["crystals:=130", "steps:=5"]), "stretch")
    assert isinstance(driver, TransientDriver)
    kernel = Kernel(driver.program, device=torch.device("cuda"))
    assert "Spilled<" in kernel.source
    found = kernel.transient(driver.transient)
    wanted = Kernel(driver.program).transient(driver.transient)
    for n, x in wanted.outputs.items():
        torch.testing.assert_close(found.outputs[n], x, rtol=1e-9, atol=1e-12, equal_nan=True)
    assert torch.equal(found.statuses[0].iterations, wanted.statuses[0].iterations)


FUNCTIONS = """
#define INGOT_REAL double
#include "lanes.h"
namespace ingot {
struct Task { const double* in; double* out; int64_t count; };
#define EACH(f) extern "C" __global__ void each_##f(const Task task) { \\
  for (int64_t i = threadIdx.x; i < task.count; i += blockDim.x) task.out[i] = f(task.in[i]); }
EACH(cosh) EACH(sinh) EACH(inverse)
}
"""


@pytest.mark.parametrize("name", ["cosh", "sinh", "inverse"])
def test_functions_of_our_own_are_right_to_a_few_bits(name: str, tmp_path: Path) -> None:
    make = torch.Generator().manual_seed(2)
    sizes = 10 ** (torch.rand(2000, generator=make, dtype=torch.float64) * 12 - 9)
    ends = [0.0, 1e-300, 0.999, 1.0, 699.9, 700.1, 709.9, 710.4, 710.5, torch.inf, torch.nan]
    given = torch.cat([sizes.clamp(max=720), torch.tensor(ends, dtype=torch.float64)])
    given = torch.cat([given, -given])
    found = torch.empty_like(given)
    run = load_on_host(FUNCTIONS, [f"each_{name}"], tmp_path, THREADS.read_headers())
    task = struct.pack("3q", given.data_ptr(), found.data_ptr(), given.numel())
    run[f"each_{name}"](1, 1, 0, task)
    exact = given.numpy().astype(np.longdouble)  # torch's own cosh overflows too early
    with np.errstate(all="ignore"):
        right = 1 / exact if name == "inverse" else getattr(np, name)(exact)
        wanted = torch.from_numpy(right.astype(np.float64))
    torch.testing.assert_close(found, wanted, rtol=1e-15, atol=0, equal_nan=True)
    assert torch.equal(found.nan_to_num().signbit(), wanted.nan_to_num().signbit())


@pytest.fixture
def has_nvrtc() -> None:
    try:
        nvrtc.open_nvrtc()
    except IngotError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("name", TEXTS)
def test_the_compiler_of_cuda_takes_a_kernel(
    name: str, real: str, has_nvrtc: None, tmp_path: Path
) -> None:
    section = write_section(compile_passes(program_of(TEXTS[name])), "run", frame=THREADS)
    source = f"#define INGOT_REAL {real}\n{write_unit([section], THREADS)}"
    code = nvrtc.compile_cubin(source, "sm_90", THREADS.read_headers(), tmp_path)
    assert code.startswith(b"\x7fELF") and b".text.run\0" in code


LONG = ("growth-only-scaled", "per_slip_hardening_declared", "single_crystal_coupled",
        "per_slip_hardening_declared_cd_predictor", "single_crystal_decoupled",
        "single_crystal_coupled_multiplicative_cd_predictor")  # fmt: skip
"""Published cases that take 3 to 9 seconds to be printed, which are for the sweep."""


@pytest.mark.parametrize("file", [
    pytest.param(
        file, id=file.parent.name,
        marks=pytest.mark.exhaustive if file.parent.name in LONG else (),
    )
    for file in sorted(CASES.rglob("*.i")) if "TransientDriver" in file.read_text()
])  # fmt: skip
def test_a_published_case_is_printed_for_gpus(file: Path) -> None:
    """Axes written out or looped, bands, arrows, tables: each goes through the frame of threads."""
    driver = build_driver(read(file), "driver")
    assert isinstance(driver, TransientDriver)
    program = compile_passes(driver.program)
    text = write_section(program, "run", frame=THREADS)
    assert text.count("goes_on<") == len(program.solves)
    has_axes = any(n.axes for solve in program.solves for n in solve.rows)
    assert "Spilled<" not in text or not has_axes


def find_loops(text: str, model: str = "model") -> dict[str, int]:
    """By the number of each solve: how many lines its iterations are said to have."""
    source = write_section(compile_passes(program_of(text, model)), "run", frame=THREADS)
    unit = write_unit([source], THREADS)
    heads = re.findall(r"newton_(\d+)\((?:(?!newton_).)*?goes_on<\d+, (\d+)>", unit, re.DOTALL)
    return {k: int(lines) for k, lines in heads}


def test_threads_wait_for_each_other_only_where_all_come_by_once() -> None:
    """A barrier in a solve that some threads enter more often than others would never end."""
    assert find_loops(TEXTS["plastic"], "update")["0"] > 100
    nested = find_loops(NESTED)
    assert len(nested) == 2 and sorted(nested.values())[0] == 0 < max(nested.values())
    assert find_loops(filled(CUBIC, {"level": 3})) == {"0": 0}
