"""Models as kernels of a GPU give what they give on a CPU: values, derivatives, status."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.drivers import TransientDriver, build_driver
from ingot.errors import IngotError
from ingot.execute import executor
from ingot.execute.kernel import Kernel
from ingot.hit import read
from ingot.program import with_adjoint, with_jacobian
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
    wanted, _ = Kernel(program, dtype=torch.float32)(inputs)
    given = {n: x.cuda() for n, x in inputs.items()}
    found, _ = Kernel(program, dtype=torch.float32, device=CUDA)(given)
    assert_alike(found, wanted, 2e-3)


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
