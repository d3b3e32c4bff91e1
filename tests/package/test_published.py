"""Published models, compiled whole: kernels and graphs give what the interpreter gives."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.packages import BOTH, Made, made

AOTI = Path(__file__).parents[3] / "shared" / "cases" / "neml2" / "aoti"
FILES = sorted(AOTI.glob("*/*.i"))


def compiled(file: Path) -> Made:
    """The model of a file with all pairs and adjoints, for kernels and graphs."""
    return made(
        file.read_text(), "model", f"published {file.parent.name}", derivative=(":",), backend=BOTH,
        train=True,
    )  # fmt: skip


def draw(one: Made, *batch: int) -> dict[str, Tensor]:
    """Random inputs; time runs from about 0 to 1 to 4, within which steps may have to be halved."""
    g = torch.Generator().manual_seed(len(one.program.inputs))
    found = {}
    for v in one.package.metadata.inputs:
        shape = (*batch, *v.sub_batch, *v.base)
        x = torch.rand(shape, generator=g, dtype=torch.float64)
        found[v.name] = {"t": 1 + 3 * x, "t~1": 0.1 * x}.get(v.name, 0.1 + 0.3 * x)
    return found


def assert_same(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.parent.name)
def test_published_models_are_compiled_right(file: Path) -> None:
    one = compiled(file)
    inputs = draw(one, 5, 3)
    wanted = one.interpreted(inputs)
    for backend in BOTH:
        artifact = one.artifact(backend)
        found = artifact.forward(inputs)
        blocks = artifact.jacobian(inputs)
        for v in one.program.outputs:
            assert_same(found[v.name], wanted[v.name])
        bars = {v.name: torch.ones_like(wanted[v.name]) for v in one.program.outputs}
        pulled = artifact.vjp(inputs, bars)
        summed = {n: torch.zeros_like(x) for n, x in inputs.items()}
        for y, x in one.pairs:
            rows = wanted[f"{y}:{x}"].reshape(-1, bars[y][0, 0].numel(), inputs[x][0, 0].numel())
            summed[x] += rows.sum(1).expand(15, -1).reshape(summed[x].shape)
            assert_same(blocks[y][x].expand_as(wanted[f"{y}:{x}"]), wanted[f"{y}:{x}"])
        for n, x in summed.items():
            assert_same(pulled[n], x)
