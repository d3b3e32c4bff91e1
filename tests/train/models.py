"""What the tests of joints share: models, a fresh process, and a comparison with eager."""

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

import ingot.train as train

SOURCE = Path(__file__).parents[2] / "src"


class Block(nn.Module):
    """A transformer block: attention, a wide layer, norms, residuals."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first = nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 3 * width)
        self.joined = nn.Linear(width, width)
        self.second = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        parts = self.mixed(self.first(x)).reshape(batch, time, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, time, width)
        x = x + self.joined(mixed)
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double()


def cnn() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(64, 3),
    ).double()  # fmt: skip


def block() -> nn.Module:
    torch.manual_seed(2)
    return Block(8, 2)


MODELS: dict[str, tuple[Callable[[], nn.Module], Tensor, train.Dynamic]] = {
    "mlp": (mlp, torch.zeros(6, 3, dtype=torch.float64, requires_grad=True), "batch"),
    "cnn": (cnn, torch.zeros(6, 1, 6, 6, dtype=torch.float64), "batch"),
    "block": (block, torch.zeros(4, 7, 8), {"x": {0: "batch", 1: "time"}}),
}


def packaged(name: str, place: Path) -> Path:
    """The package of a model, compiled by Inductor."""
    make, example, dynamic = MODELS[name]
    train.joint(make(), (example,), dynamic=dynamic).save(place)
    return place


def said_elsewhere(code: str) -> str:
    """What a fresh process prints, which has never seen the source of a model."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def pair(tensors: tuple[object, ...]) -> tuple[list[object], list[object]]:
    """Two equal sets of arguments, apart in memory."""
    return copy_of(tensors), copy_of(tensors)


def copy_of(values: tuple[object, ...]) -> list[object]:
    return [
        v.detach().clone().requires_grad_(v.requires_grad)
        if isinstance(v, Tensor)
        else copy.copy(v)
        for v in values
    ]


def eager(function: Callable[..., object], example: object, **more: object) -> train.Joint:
    """A joint whose graphs run line by line: the wrapper is the same, nothing is compiled."""
    return train.joint(  # pyright: ignore[reportArgumentType]
        function, example, compile_forward="eager", compile_backward="eager", **more
    )


def leaves(value: object) -> list[object]:
    return torch.utils._pytree.tree_leaves(value)


def disagreement(
    function: Callable[..., object], joint: Callable[..., object], values: tuple[object, ...]
) -> float:
    """The largest difference in outputs, gradients and what is written to; shapes must agree."""
    ours, theirs = pair(values)
    torch.manual_seed(5)
    expected = leaves(function(*theirs))
    torch.manual_seed(5)
    found = leaves(joint(*ours))
    worst = 0.0
    sums: list[Tensor] = []
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if not isinstance(b, Tensor):
            assert a == b
            continue
        assert isinstance(a, Tensor)
        assert (a.shape, a.dtype, a.requires_grad) == (b.shape, b.dtype, b.requires_grad)
        worst = max(worst, _apart(a, b))
    for given in (found, expected):
        wanted = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
        sums += (
            [torch.stack([(x * x.detach().sin()).sum() for x in wanted]).sum()] if wanted else []
        )
    for total in sums:
        total.backward()
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            worst = max(worst, _apart(a, b))
            if a.is_leaf and a.requires_grad and b.grad is not None:
                assert a.grad is not None
                worst = max(worst, _apart(a.grad, b.grad))
    return worst


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a.detach().double() - b.detach().double()).abs().max()) if a.numel() else 0.0
