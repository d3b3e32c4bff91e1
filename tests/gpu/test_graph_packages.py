"""Packages of joints and of regions for a GPU, in a process without the source, do what eager does.

What must hold on the CPU too is in tests/train/test_package.py and tests/regions/test_aot.py.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ingot import IngotError, regions, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

DEVICE = "cuda"
WIDTH = 16

ELSEWHERE = """
import sys, torch
sys.modules["tests"] = None
from ingot import regions, train
for kind, folder in zip(sys.argv[1::2], sys.argv[2::2]):
    model = (train if kind == "joint" else regions).load(folder)
    wanted = torch.load(folder + ".pt", weights_only=True)
    for seed, given, value, gradients, buffers in wanted:
        for _ in range(2):  # the second time nothing is examined
            torch.manual_seed(seed)
            leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in given]
            found = model(*leaves)
            assert found.device == value.device
            torch.testing.assert_close(found, value, rtol=1e-10, atol=1e-10)
            learned = [x for x in (*leaves, *model.parameters()) if x.requires_grad]
            own = torch.autograd.grad(found.square().sum(), learned)
            for a, b in zip(own, gradients, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
        with torch.no_grad():
            torch.manual_seed(seed)
            torch.testing.assert_close(model(*given), value, rtol=1e-10, atol=1e-10)
    for a, b in zip(model.buffers(), buffers, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
print("right")
"""


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        inner = F.silu(self.inner(self.norm(x)))
        return x + (inner if mask is None else inner.masked_fill(~mask, -0.5))


class Normed(Block):
    """A block with statistics that training writes, and with random numbers.

    No dropout: eager draws that in a kernel of its own on a GPU, which gives other numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.batch = nn.BatchNorm1d(WIDTH)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        found: Tensor = self.batch(super().forward(x, mask))
        return found * torch.rand_like(found)


def on_device(module: nn.Module) -> nn.Module:
    return module.to(DEVICE, torch.float64)


def draw_rows(count: int = 5) -> Tensor:
    return torch.randn(count, WIDTH, device=DEVICE, dtype=torch.float64)


def run_eagerly(module: nn.Module, *calls: tuple[Tensor, ...]) -> list[Any]:
    """Three runs of each call, as the other process makes them, with what eager gave."""
    wanted = []
    for seed, given in enumerate(calls):
        leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in given]
        for _ in range(2):
            torch.manual_seed(seed)
            module(*leaves)
        torch.manual_seed(seed)
        value = module(*leaves)
        learned = [x for x in (*leaves, *module.parameters()) if x.requires_grad]
        gradients = torch.autograd.grad(value.square().sum(), learned)
        wanted.append((seed, [*given], value.detach(), [*gradients], [*module.buffers()]))
    return wanted


def compare_elsewhere(*packages: tuple[str, Path, list[Any]]) -> None:
    arguments = []
    for kind, folder, wanted in packages:
        torch.save(wanted, f"{folder}.pt")
        arguments += [kind, str(folder)]
    said = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *arguments], capture_output=True, text=True, cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert said.stdout == "right\n", said.stderr


@contextmanager
def skip_where_torch_dies() -> Iterator[None]:
    """Torch's own AOTInductor ends a process where it cannot load what it has compiled."""
    try:
        yield
    except IngotError as error:
        assert "its process was ended by SIGSEGV" in str(error)
        pytest.skip("AOTInductor of this torch does not load its own code on this GPU")


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Path]:
    torch.manual_seed(0)
    module, folder = on_device(Block()), tmp_path_factory.mktemp("gpu") / "joint"
    x, mask = draw_rows().requires_grad_(), draw_rows() > 0
    with skip_where_torch_dies():
        train.joint(module, examples=[x, (x, mask)], dynamic={0: "batch"}).save(folder)
    return module, folder


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Path]:
    torch.manual_seed(1)
    module = on_device(nn.Sequential(*(Block() for _ in range(3))))
    folder = tmp_path_factory.mktemp("gpu") / "regions"
    ways: dict[str, Any] = {"mode": "aot", "dynamic": {0: "batch"}, "output": folder}
    with skip_where_torch_dies():
        made = regions.compile(module, draw_rows(), Block, **ways)
    assert made.report.distinct == 1 and made.report.instances == 3
    return module, folder


def test_packages_are_right_in_a_process_without_the_source(
    joint: tuple[nn.Module, Path], package: tuple[nn.Module, Path]
) -> None:
    calls = [(draw_rows(n),) for n in (5, 2, 9)]
    masked = [(x, x > 0.3) for (x,) in calls]
    compare_elsewhere(
        ("joint", joint[1], run_eagerly(joint[0], *calls, *masked)),
        ("regions", package[1], run_eagerly(package[0], *calls)),
    )


def test_statistics_and_random_numbers_are_eagers(tmp_path: Path) -> None:
    packages = []
    for kind in ("joint", "regions"):
        torch.manual_seed(2)
        module = on_device(nn.Sequential(Normed(), Normed()))
        folder, x = tmp_path / kind, draw_rows()
        ways: dict[str, Any]
        if kind == "joint":
            ways = {"compile_forward": "eager", "compile_backward": "eager"}
            train.joint(module, x.requires_grad_(), **ways).save(folder)
        else:
            ways = {"mode": "aot", "backend": "eager", "output": folder}
            regions.compile(module, x, Normed, **ways)
        packages.append((kind, folder, run_eagerly(module, (draw_rows(),), (draw_rows(),))))
    compare_elsewhere(*packages)


def test_whole_calls_of_a_package_are_replayed(package: tuple[nn.Module, Path]) -> None:
    module, folder = package
    loaded = regions.load(folder, cuda_graphs=True)
    with torch.no_grad():
        kept = [(x, loaded(x)) for x in (draw_rows(n) for n in (5, 5, 5, 5, 5, 3, 3, 3, 3, 5))]
        for x, y in kept:
            torch.testing.assert_close(y, module(x), rtol=1e-10, atol=1e-10)


class Summing(nn.Module):
    """A block that adds what it computes to an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Block()

    def forward(self, x: Tensor, total: Tensor) -> Tensor:
        total.add_(self.inner(x) * x)
        return x + total


class Sums(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Summing() for _ in range(2))

    def forward(self, x: Tensor, total: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, total)
        return x


def test_writes_arrive_in_replays_of_calls_that_began_with_zeros(tmp_path: Path) -> None:
    module = on_device(Sums()).requires_grad_(False)
    ways: dict[str, Any] = {"mode": "aot", "backend": "eager", "output": tmp_path / "sums"}
    regions.compile(module, (draw_rows(), draw_rows()), Summing, **ways)
    loaded = regions.load(tmp_path / "sums", cuda_graphs=True)
    kept = torch.zeros_like(draw_rows())
    for call in range(12):
        for total in (kept, torch.zeros_like(kept)):
            x, own = draw_rows() * (call > 6), total.clone()
            torch.testing.assert_close(loaded(x, total), module(x, own), rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(total, own, rtol=1e-10, atol=1e-10)
    assert kept.any()


@pytest.mark.parametrize("kind", ["joint", "regions"])
def test_operands_on_the_cpu_and_of_other_layouts(
    kind: str, joint: tuple[nn.Module, Path], package: tuple[nn.Module, Path]
) -> None:
    load: Callable[..., Any] = train.load if kind == "joint" else regions.load
    module, folder = joint if kind == "joint" else package
    loaded = load(folder)
    with pytest.raises(IngotError, match="is on cpu; it was traced on cuda"):
        loaded(draw_rows().cpu())
    strided = torch.randn(WIDTH, 7, device=DEVICE, dtype=torch.float64).t()
    unaligned = torch.randn(6 * WIDTH + 1, device=DEVICE, dtype=torch.float64)[1:].view(6, WIDTH)
    for x in (strided, unaligned):
        for _ in range(2):
            torch.testing.assert_close(loaded(x), module(x), rtol=1e-10, atol=1e-10)
