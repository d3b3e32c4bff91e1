"""Packages load without the source, in inference and in training, and refuse what does not fit."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

from ingot import regions
from ingot.cli.torch_stages import show_package
from ingot.errors import IngotError
from ingot.package.seal import seal
from tests.regions.networks import Attention, Residual, stack

pytestmark = pytest.mark.slow

ELSEWHERE = """
import sys, torch
sys.modules["tests"] = None
from ingot import regions
for folder in sys.argv[1:]:
    model = regions.load(folder)
    given = torch.load(folder + ".pt", weights_only=True)
    for x, y, gradients in given["calls"]:
        x.requires_grad_(bool(gradients))
        found = model(x)
        torch.testing.assert_close(found, y, rtol=1e-12, atol=1e-12)
        if gradients:
            wanted = [x, *model.parameters()]
            own = torch.autograd.grad(found.square().sum(), wanted)
            for a, b in zip(own, gradients, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    assert list(model.module.state_dict()) == given["names"], model.module.state_dict().keys()
print("right")
"""


def made_of(count: int, *last: nn.Module) -> nn.Module:
    """Few pieces, since each is compiled for seconds."""
    return nn.Sequential(*(Residual(8) for _ in range(count)), *last).double()


@pytest.fixture(scope="module")
def inference(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Path, regions.Compiled]:
    torch.manual_seed(0)
    model = made_of(3, nn.Linear(8, 3)).requires_grad_(False)
    folder = tmp_path_factory.mktemp("packages") / "inference"
    x = torch.randn(4, 8).double()
    made = regions.compile(model, x, Residual, "aot", dynamic={0: "batch"}, output=folder)
    return model, folder, made


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Path, regions.Compiled]:
    torch.manual_seed(1)
    model = made_of(2)
    folder = tmp_path_factory.mktemp("packages") / "training"
    x = torch.randn(4, 8).double()
    made = regions.compile(model, x, "auto", "aot", dynamic={0: "batch"}, output=folder)
    return model, folder, made


def calls(model: nn.Module, *, grad: bool) -> list[object]:
    found = []
    for rows in (1, 2, 5):
        x = torch.randn(rows, 8, dtype=torch.float64, requires_grad=grad)
        y = model(x)
        wanted = [x, *model.parameters()]
        gradients = torch.autograd.grad(model(x).square().sum(), wanted) if grad else ()
        found.append((x.detach(), y.detach(), list(gradients)))
    return found


def test_package_is_right_in_a_process_without_the_source(
    inference: tuple[nn.Module, Path, regions.Compiled],
    training: tuple[nn.Module, Path, regions.Compiled],
) -> None:
    for (model, folder, _), grad in ((inference, False), (training, True)):
        names = list(model.state_dict())
        torch.save({"calls": calls(model, grad=grad), "names": names}, f"{folder}.pt")
    folders = [str(inference[1]), str(training[1])]
    command = [sys.executable, "-c", ELSEWHERE, *folders]
    said = subprocess.run(
        command, capture_output=True, text=True, cwd="/",
        env={"PYTHONPATH": str(Path(regions.__file__).parents[2])},
    )  # fmt: skip
    assert said.stdout == "right\n", said.stderr


def test_compiled_package_shares_the_tensors_of_the_module(
    inference: tuple[nn.Module, Path, regions.Compiled],
) -> None:
    model, _, made = inference
    x = torch.randn(3, 8).double()
    before = made(x)
    model.get_parameter("0.up.weight").mul_(1.5)
    assert not torch.equal(made(x), before)
    torch.testing.assert_close(made(x), model(x), rtol=1e-12, atol=1e-12)


def test_package_trains_like_eager(training: tuple[nn.Module, Path, regions.Compiled]) -> None:
    _, folder, _ = training
    loaded = regions.load(folder)
    eager = made_of(2)
    eager.load_state_dict(loaded.module.state_dict())
    steps = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (eager, loaded)]
    for _ in range(5):
        x = torch.randn(4, 8, dtype=torch.float64)
        losses = []
        for run, step in zip((eager, loaded), steps, strict=True):
            step.zero_grad()
            losses.append(run(x).square().mean())
            losses[-1].backward()
            step.step()
        torch.testing.assert_close(*losses, rtol=1e-11, atol=1e-11)
    with torch.no_grad():
        torch.testing.assert_close(loaded(x), eager(x), rtol=1e-11, atol=1e-11)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["jit", "aot"])
def test_single_precision_gradients_equal_eager(mode: Any, tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(*(Attention(8) for _ in range(2)))
    place = tmp_path / "package" if mode == "aot" else None
    made = regions.compile(model, torch.randn(2, 5, 8), Attention, mode, output=place)
    wanted = list(model.parameters())
    # what is examined, what lies as that did, other strides, and an input without a gradient
    for x in (torch.randn(2, 5, 8), torch.randn(2, 5, 8), torch.randn(5, 2, 8).transpose(0, 1)):
        for need in (True, False):
            x = x.detach().requires_grad_(need)
            learn = [x, *wanted] if need else wanted
            ours = torch.autograd.grad(made(x).square().sum(), learn)
            right = torch.autograd.grad(model(x).square().sum(), learn)
            for a, b in zip(ours, right, strict=True):
                assert a.dtype == torch.float32
                assert (a - b).norm() <= 1e-5 * b.norm()
            with torch.no_grad():
                torch.testing.assert_close(made(x), model(x), rtol=1e-5, atol=1e-5)


def test_modes_do_not_mix_after_calls_that_lie_alike(
    training: tuple[nn.Module, Path, regions.Compiled],
) -> None:
    model, _, made = training
    x = torch.randn(4, 8, dtype=torch.float64)
    for _ in range(2):
        assert made(x).requires_grad
        with torch.no_grad():
            assert not made(x).requires_grad
        with torch.inference_mode():
            torch.testing.assert_close(made(x), model(x), rtol=1e-12, atol=1e-12)
        negated = torch.complex(x, x).conj().imag
        torch.testing.assert_close(made(negated), model(negated), rtol=1e-12, atol=1e-12)
        with pytest.raises(IngotError, match=r"by a transform of torch\.func"):
            torch.func.vmap(made)(x[None])
        with forward_ad.dual_level(), pytest.raises(IngotError, match="carries a tangent"):
            made(forward_ad.make_dual(x, x))


def test_strides_and_sizes_are_right_or_refused(
    inference: tuple[nn.Module, Path, regions.Compiled],
) -> None:
    model, folder, _ = inference
    loaded = regions.load(folder)
    loaded.module.load_state_dict(model.state_dict())
    big = torch.randn(40, 40).double()
    for x in (big[:3, :8], big[::5, ::5], big.t()[:4, :8], big[:1, :8].expand(6, 8), big[:0, :8]):
        torch.testing.assert_close(loaded(x), model(x), rtol=1e-12, atol=1e-12)
    wrong = {
        r"has shape \(3, 9\)": big[:3, :9],
        "is float32": big[:3, :8].float(),
        "asks for a gradient; it was traced without": big[:3, :8].requires_grad_(),
    }
    for said, x in wrong.items():
        with pytest.raises(IngotError, match=said):
            loaded(x)


def test_parameters_and_modes_that_do_not_fit_are_refused(
    inference: tuple[nn.Module, Path, regions.Compiled],
) -> None:
    loaded = regions.load(inference[1])
    x = torch.randn(3, 8).double()
    layer = loaded.module.get_submodule("3")
    old = layer.weight
    layer.weight = nn.Parameter(torch.randn(4, 8).double(), requires_grad=False)
    with pytest.raises(IngotError, match=r"'3.weight' has shape \(4, 8\); it was traced as"):
        loaded(x)
    layer.weight = nn.Parameter(torch.randn(8, 3).double().t(), requires_grad=False)
    loaded(x)
    layer.weight = old
    with pytest.raises(IngotError, match="was traced in training mode"):
        loaded.eval()
    with torch.autocast("cpu"), pytest.raises(IngotError, match=r"called under autocast\('cpu'"):
        loaded(x)


def test_broken_packages_are_refused(
    inference: tuple[nn.Module, Path, regions.Compiled], tmp_path: Path
) -> None:
    import shutil

    with pytest.raises(IngotError, match="no package of regions in"):
        regions.load(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(inference[1], copy)
    text = (copy / "graphs.json").read_text()
    for key, value, said in (
        ("schema_version", 99, "schema version 99, this Ingot reads 7"),
        ("torch_version", "1.0", "compiled by torch 1.0"),
        ("format", "x", "describes no package 'ingot-graphs'"),
        ("level", "x86-64-v9", "compiled for x86-64-v9"),
    ):
        changed = json.dumps(json.loads(text) | {key: value}).encode()
        (copy / "graphs.json").write_bytes(seal(changed))
        with pytest.raises(IngotError, match=said):
            regions.load(copy)
    (copy / "graphs.json").write_text(text)
    (copy / "graph0.pt2").write_bytes(b"changed")
    with pytest.raises(IngotError, match=r"'graph0.pt2' was changed after it was compiled"):
        regions.load(copy)


def test_a_package_shows_its_units(
    training: tuple[nn.Module, Path, regions.Compiled],
) -> None:
    folder = str(training[1])
    shown = {s: show_package(folder, s).sections for s in ("model", "forward", "backward", "code")}
    *units, files = shown["model"]
    assert [s.name for s in shown["backward"]] == [s.name for s in units]
    assert all(re.match(r"# backward: \d+ operations, ", s.text) for s in shown["backward"])
    assert "graph0.pt2" in files.text
    kernels = [s.name for s in shown["code"] if s.name.endswith("kernel.cpp")]
    assert kernels == [f"{s.name}, {half}, kernel.cpp" for s in units
                       for half in ("forward", "backward")]  # fmt: skip
    with pytest.raises(IngotError, match="does not hold its stage 'joint'"):
        show_package(folder, "joint")


def test_package_without_a_place_is_refused() -> None:
    with pytest.raises(IngotError, match="add output=FOLDER"):
        regions.compile(stack(1), torch.randn(4, 8), Residual, "aot")


def test_a_loaded_package_outlives_its_folder(
    inference: tuple[nn.Module, Path, regions.Compiled], tmp_path: Path
) -> None:
    model, folder, _ = inference
    place = tmp_path / "copy"
    shutil.copytree(folder, place)
    loaded = regions.load(place)
    # other tests change the module that the package was made of
    loaded.module.load_state_dict(model.state_dict())
    for file in place.iterdir():
        file.write_bytes(b"")
    x = torch.randn(4, 8).double()
    torch.testing.assert_close(loaded(x), model(x), rtol=1e-12, atol=1e-12)


def test_a_parameter_that_is_written_to_and_learns_is_refused(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Embedding(5, 4, max_norm=1.0), nn.Linear(4, 4))
    with pytest.raises(IngotError, match=r"no-gradient.*'0.weight'"):
        regions.compile(
            net, torch.tensor([1, 2]), mode="aot", output=tmp_path / "a", backend="eager"
        )
    assert not (tmp_path / "a").exists()
