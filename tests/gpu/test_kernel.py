"""Models as kernels of a GPU give what they give on a CPU: values, derivatives, status."""

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.codegen.cuda import load_functions
from ingot.codegen.frames import THREADS
from ingot.drivers import TransientDriver, build_driver
from ingot.errors import IngotError
from ingot.execute import executor
from ingot.execute.kernel import Kernel
from ingot.hit import read, read_text
from ingot.model import build
from ingot.program import trace, with_adjoint, with_jacobian
from tests.execute.test_kernel_cuda import TEXTS, drawn
from tests.systems import program_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

CUDA = torch.device("cuda")
CASES = Path(__file__).parents[3] / "shared" / "cases" / "neml2"
FILES = sorted(
    file for file in (CASES / "regression").rglob("*.i") if "TransientDriver" in file.read_text()
)


def assert_alike(found: dict[str, Tensor], wanted: dict[str, Tensor], close: float = 1e-9) -> None:
    sizes = {n: float(x.nan_to_num().abs().max()) for n, x in wanted.items()}
    noise = close * 1e-4 * max(sizes.values())
    for n, x in wanted.items():
        assert found[n].is_cuda
        limit = close * sizes[n] + noise
        torch.testing.assert_close(found[n].cpu(), x, rtol=0, atol=limit, equal_nan=True)


@pytest.mark.parametrize("what", ["values", "jacobian", "adjoint"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_call_gives_what_the_cpu_gives(name: str, what: str) -> None:
    program = program_of(TEXTS[name])
    every = [v.name for v in program.inputs]
    if what == "jacobian":
        pairs = [(o.name, i) for o in program.outputs for i in every]
        program = with_jacobian(program, pairs)
    elif what == "adjoint":
        program = with_adjoint(program, [v.name for v in program.outputs], every)
    inputs = drawn(program, 1000)
    wanted, told = Kernel(program)(inputs)
    found, status = Kernel(program, device=CUDA)({n: x.cuda() for n, x in inputs.items()})
    assert_alike(found, wanted)
    for ours, theirs in zip(status, told, strict=True):
        assert torch.equal(ours.reason.cpu(), theirs.reason)


@pytest.mark.parametrize("name", TEXTS)
def test_single_precision_is_near(name: str) -> None:
    program = program_of(TEXTS[name])
    inputs = {n: x.float() for n, x in drawn(program, 500, 1e-3).items()}
    wanted, told = Kernel(program, dtype=torch.float32)(inputs)
    given = {n: x.cuda() for n, x in inputs.items()}
    found, status = Kernel(program, dtype=torch.float32, device=CUDA)(given)
    # a GPU rounds otherwise: a point at the edge of what single precision reaches may fail on one
    reasons = [torch.maximum(a.reason.cpu(), b.reason) for a, b in zip(status, told, strict=True)]
    both = torch.stack(reasons).amax(0).reshape(-1) == 0 if reasons else torch.ones(500) == 1
    assert both.float().mean() >= 0.99
    assert_alike({n: x[both.cuda()] for n, x in found.items()},
                 {n: x[both] for n, x in wanted.items()}, 2e-3)  # fmt: skip


def test_a_point_has_the_same_bits_in_every_batch() -> None:
    program = program_of(TEXTS["viscous"])
    kernel = Kernel(program, device=CUDA)
    inputs = {n: x.cuda() for n, x in drawn(program, 1000).items()}
    whole, _ = kernel(inputs)
    part, _ = kernel({n: x[337:341] for n, x in inputs.items()})
    assert all(torch.equal(part[n], x[337:341]) for n, x in whole.items())


def called() -> tuple[Kernel, dict[str, Tensor], dict[str, Tensor]]:
    """A kernel, inputs on the GPU, and what it gives."""
    program = program_of(TEXTS["viscous"])
    kernel = Kernel(program, device=CUDA)
    inputs = {n: x.cuda() for n, x in drawn(program, 256).items()}
    return kernel, inputs, kernel(inputs)[0]


def test_a_call_can_be_part_of_a_cuda_graph() -> None:
    kernel, inputs, wanted = called()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found, _ = kernel(inputs)
    graph.replay()
    torch.cuda.synchronize()
    assert all(torch.equal(found[n], x) for n, x in wanted.items())


def test_streams_are_respected() -> None:
    kernel, inputs, wanted = called()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(10_000_000)
        late = {n: x + 0 for n, x in inputs.items()}
        found, _ = kernel(late)
    side.synchronize()
    assert all(torch.equal(found[n], x) for n, x in wanted.items())


def test_tensors_of_the_cpu_are_refused() -> None:
    program = program_of(TEXTS["viscous"])
    with pytest.raises(IngotError, match="is on cpu, and the kernel runs on cuda:0"):
        Kernel(program, device=CUDA)(drawn(program, 3))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.parent.relative_to(CASES)))
def test_published_cases_give_what_the_cpu_gives(file: Path) -> None:
    driver = build_driver(read(file), "driver")
    assert isinstance(driver, TransientDriver)
    wanted = driver.compute("kernel")
    ready = executor(driver.program, "kernel", device=CUDA)
    found = ready.transient(driver.transient.to(CUDA))
    assert_alike(found.outputs, wanted.outputs)
    for ours, theirs in zip(found.statuses, wanted.statuses, strict=True):
        assert torch.equal(ours.reason.cpu(), theirs.reason)


def test_arrays_of_more_than_two_to_the_31_numbers_are_read_to_their_end() -> None:
    text = """
    [Models]
      [model]
        type = LinearIsotropicElasticity
        coefficients = '100 0.3'
        coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
        strain = 'strain'
        stress = 'stress'
      []
    []
    """
    kernel = Kernel(trace(build(read_text(text), "model")), device=CUDA)
    points = (1 << 31) // 6 + 1000
    if torch.cuda.mem_get_info()[0] < 2.2 * 48 * points:
        pytest.skip("the GPU has too little memory free")
    strain = torch.zeros(points, 6, dtype=torch.float64, device=CUDA)
    strain[-1000:] = torch.rand(1000, 6, dtype=torch.float64, device=CUDA)
    last = strain[-1000:].clone()
    found = kernel({"strain": strain})[0]["stress"]
    assert torch.equal(found[-1000:], kernel({"strain": last})[0]["stress"])
    assert not found[: points - 1000].any()
    del found, strain
    torch.cuda.empty_cache()


def test_a_call_without_memory_fails_alone() -> None:
    kernel, inputs, wanted = called()
    count = torch.cuda.mem_get_info()[1] // 8
    large = {n: x[:1].expand(count, *x.shape[1:]) for n, x in inputs.items()}
    with pytest.raises(IngotError, match="the GPU is full: Tried to allocate"):
        kernel(large)
    found, _ = kernel(inputs)
    assert all(torch.equal(found[n], x) for n, x in wanted.items())


INVERT = """
#define INGOT_REAL double
#include "lanes.h"
namespace ingot {
struct Task { const double* in; double* out; int64_t count; };
extern "C" __global__ void invert(const Task task) {
  const int64_t threads = gridDim.x * blockDim.x;
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < task.count; i += threads)
    task.out[i] = inverse(task.in[i]);
}
}
"""


def test_an_inverse_is_right_to_its_last_bit_but_one() -> None:
    make = torch.Generator().manual_seed(1)
    bits = torch.randint(-(2**63), 2**63 - 1, (1 << 20,), generator=make)
    ends = [2.0**-1074, 2.0**-1022, 2.0**-924, 2.0**-923, 1.0, 2.0**924, 2.0**1023, torch.inf, 0.0]
    near = [x * (1 + k * 2.0**-52) for x in ends for k in range(-4, 5)]
    every = torch.tensor([*near, *(-x for x in near), torch.nan], dtype=torch.float64)
    given = torch.cat([bits.view(torch.float64), every]).cuda()
    found = torch.empty_like(given)
    run = load_functions(INVERT, CUDA, THREADS.read_headers())("invert")
    task = struct.pack("3q", given.data_ptr(), found.data_ptr(), given.numel())
    run(64, 128, torch.cuda.current_stream().cuda_stream, task)
    wanted = 1 / given
    same = (found == wanted) | (found.isnan() & wanted.isnan())
    # neighbours of a double are the next whole numbers as bits, signs apart
    apart = (found.abs().view(torch.int64) - wanted.abs().view(torch.int64)).abs()
    assert (same | (apart <= 1)).all()
    assert same.double().mean() > 0.9
    special = (wanted == 0) | ~wanted.isfinite()
    assert same[special].all() and special.sum() > 10
    assert (found.signbit() == wanted.signbit())[~wanted.isnan()].all()


SANITIZED = ("isoharden", "chaboche", "gurson", "single_crystal_decoupled", "pyrolysis")
"""Newton in registers, in local memory, by hand-written rules, of many lines, without tensors."""


@pytest.mark.parametrize("name", SANITIZED)
def test_kernels_touch_no_memory_of_others(name: str) -> None:
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        pytest.skip("compute-sanitizer is not on the path")
    (file,) = (f for f in FILES if f.parent.name == name)
    words = [tool, "--error-exitcode", "9", "--require-cuda-init", "yes", sys.executable, "-c"]
    words += ["from ingot.cli import main; main()"]
    words += ["run", str(file), "driver", "--device", "cuda"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "ERROR SUMMARY: 0 errors" in done.stdout
