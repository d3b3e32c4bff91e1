"""A joint saved and loaded says the same; what was changed, or does not fit, is refused."""

import enum
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ingot
import ingot.regions
import ingot.train as train
from ingot.errors import IngotError
from ingot.package.seal import seal
from tests.train.models import MODELS, eager, mlp, said_elsewhere

CHECK = """
import sys, torch, ingot.train
joint = ingot.train.load({place!r})
assert not any(name.startswith("torch._inductor") for name in sys.modules)
for batch in (1, 2, 5):
    torch.manual_seed(batch)
    x = torch.randn(batch, 3, dtype=torch.float64, requires_grad=True)
    held = list(joint.parameters())
    print(torch.autograd.gradcheck(lambda x, *held: joint(x), (x, *held)), end=" ")
x = torch.ones(2, 3, dtype=torch.float64)
print(joint(x).sum().item().hex(), list(joint.state_dict()))
"""


@pytest.mark.slow
def test_gradients_are_right_in_a_process_without_the_source(mlp_package: Path) -> None:
    said = said_elsewhere(CHECK.format(place=str(mlp_package)))
    value = train.load(mlp_package)(torch.ones(2, 3, dtype=torch.float64)).sum().item().hex()
    names = ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert said == f"True True True {value} {names}"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("joints") / "eager"
    eager(mlp(), MODELS["mlp"][1], dynamic="batch").save(place)
    return place


def test_graphs_that_run_line_by_line_load_without_the_source(package: Path) -> None:
    source = mlp()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(train.load(package)(x), source(x), rtol=0, atol=1e-12)
    assert said_elsewhere(CHECK.format(place=str(package))).startswith("True True True")


def test_constants_of_a_function_are_saved(tmp_path: Path) -> None:
    joint = eager(lambda x: x * torch.arange(3.0) + torch.inf, (torch.ones(2, 3),))
    joint.save(tmp_path / "joint")
    assert torch.equal(
        train.load(tmp_path / "joint")(torch.ones(2, 3)), torch.full((2, 3), torch.inf)
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_saved(number: float, tmp_path: Path) -> None:
    def scale(x: Tensor, given: dict[Any, Any]) -> dict[str, Any]:
        return {"twice": x * 2, "bound": number, "given": given[3][0]}

    given, x = {"a": number, 3: [number]}, torch.randn(3)
    traced = train.joint(scale, (x, given), compile_forward="eager", compile_backward="eager")
    traced.save(tmp_path / "package")
    for each in (traced, train.load(tmp_path / "package")):
        found = each(x, given)
        assert [repr(found[key]) for key in ("bound", "given")] == [repr(number)] * 2
        with pytest.raises(IngotError, match="given"):
            each(x, {"a": None, 3: [number]})


class Way(enum.IntEnum):
    SLOW = 1
    FAST = 2


class Word(enum.StrEnum):
    SLOW = "slow"
    FAST = "fast"


class Kind(enum.Enum):
    SLOW = 0.5
    FAST = None


@pytest.mark.parametrize("kind", [Way, Word, Kind])
def test_a_member_of_an_enumeration_is_the_same_live_and_loaded(kind: Any, tmp_path: Path) -> None:
    def scale(x: Tensor, way: Any, ways: Any) -> Any:
        return (x * 2 if way is kind.FAST else x * 3), way, {"first": ways[0]}

    x, ways = torch.randn(3), [kind.SLOW]
    traced = eager(scale, (x, kind.FAST, ways))
    traced.save(tmp_path / "package")
    for each in (traced, train.load(tmp_path / "package")):
        for _ in range(2):
            found = each(x, kind.FAST, ways)
            assert torch.equal(found[0], x * 2)
            assert found[1] is kind.FAST and found[2] == {"first": kind.SLOW}
        for way, others in ((kind.SLOW, ways), (kind.FAST.value, ways), (kind.FAST, [kind.FAST])):
            with pytest.raises(IngotError, match="wrong-call"):
                each(x, way, others)


def test_a_number_of_a_class_of_its_own_is_refused_by_name() -> None:
    class Count(int):
        pass

    with pytest.raises(IngotError, match=r"wrong-argument.*'count' is a Count"):
        eager(lambda x, count: x * count, {"x": torch.randn(3), "count": Count(3)})


@pytest.mark.parametrize("load", [ingot.regions.load, ingot.load], ids=["regions", "models"])
def test_the_wrong_loader_names_the_right_one(package: Path, load: Any) -> None:
    with pytest.raises(IngotError, match=r"ingot\.train\.load\(FOLDER\)"):
        load(package)


def test_a_loaded_joint_is_saved_again(package: Path, tmp_path: Path) -> None:
    joint = train.load(package)
    with torch.no_grad():
        joint.get_parameter("2.bias").zero_()
    joint.save(tmp_path / "again")
    assert not train.load(tmp_path / "again").get_parameter("2.bias").any()


def test_what_is_frozen_and_what_is_no_parameter_stay_so(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    model[0].bias.requires_grad_(False)
    eager(model, torch.zeros(4, 3)).save(tmp_path / "joint")
    loaded = train.load(tmp_path / "joint")
    assert not loaded.get_parameter("0.bias").requires_grad
    assert [n for n, _ in loaded.named_parameters()] == [n for n, _ in model.named_parameters()]
    assert [n for n, _ in loaded.named_buffers()] == [n for n, _ in model.named_buffers()]
    with pytest.raises(IngotError, match=r"no-gradient.*'0.bias'"):
        loaded.requires_grad_(True)(torch.zeros(4, 3))


def test_a_save_replaces_all_that_was_there(package: Path, tmp_path: Path) -> None:
    place = tmp_path / "joint"
    many = [torch.ones([2] * n) for n in range(1, 5)]
    eager(lambda x: x * x.ndim, None, examples=many).save(place)
    before = {f.name for f in place.iterdir()}
    train.load(package).save(place)
    names = {f.name for f in place.iterdir()}
    assert before - names
    assert json.loads((place / "graphs.json").read_text())["digests"].keys() == names - {
        "graphs.json"
    }
    assert [f.name for f in tmp_path.iterdir()] == ["joint"]


def test_a_half_compiled_by_a_callable_is_not_saved(tmp_path: Path) -> None:
    joint = train.joint(
        mlp(), MODELS["mlp"][1], compile_forward="eager", compile_backward=lambda graph, _: graph
    )
    joint(torch.zeros(6, 3, dtype=torch.float64)).sum().backward()
    with pytest.raises(IngotError, match=r"unsaveable.*the backward graph was compiled by a call"):
        joint.save(tmp_path / "joint")
    assert not list(tmp_path.iterdir())


def test_graphs_inside_a_graph_that_runs_line_by_line_are_not_saved(tmp_path: Path) -> None:
    def either(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    joint = eager(either, torch.ones(3))
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(joint(x), either(x))
    with pytest.raises(IngotError, match=r"unsaveable.*holds graphs(.|\n)*'inductor'"):
        joint.save(tmp_path / "joint")
    assert not list(tmp_path.iterdir())


def broken(package: Path, place: Path, **changes: object) -> Path:
    shutil.copytree(package, place)
    file = place / "graphs.json"
    file.write_bytes(seal(json.dumps({**json.loads(file.read_text()), **changes}).encode()))
    return place


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": "ingot"}, "broken-package.*describes no package 'ingot-graphs'"),
        ({"schema_version": 0}, "wrong-schema.*schema version 0, this Ingot reads 7"),
        ({"torch_version": "1.0.0"}, "wrong-torch.*compiled by torch 1.0.0"),
        ({"calls": 3}, "broken-package.*Expected `array`"),
        ({"level": "z9", "graphs": ["inductor", "inductor"]}, "wrong-level.*compiled for z9"),
    ],
)
def test_metadata_that_does_not_fit_is_refused(
    changes: dict[str, object], told: str, package: Path, tmp_path: Path
) -> None:
    with pytest.raises(IngotError, match=told):
        train.load(broken(package, tmp_path / "joint", **changes))


def test_a_package_for_a_device_that_is_not_here_is_refused(package: Path, tmp_path: Path) -> None:
    text = (package / "graphs.json").read_text().replace('"cpu"', '"cuda:99"')
    with pytest.raises(IngotError, match=r"no-device.*compiled for 'cuda:99'"):
        train.load(broken(package, tmp_path / "joint", **json.loads(text)))


def test_files_that_were_changed_or_lost_are_refused(package: Path, tmp_path: Path) -> None:
    place = broken(package, tmp_path / "joint")
    with (place / "state.pt").open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(IngotError, match=r"broken-package.*'state.pt' was changed"):
        train.load(place)
    (place / "state.pt").unlink()
    with pytest.raises(IngotError, match=r"broken-package.*'state.pt' is missing"):
        train.load(place)
    (place / "graphs.json").write_text("{")
    with pytest.raises(IngotError, match=r"broken-package.*is no JSON"):
        train.load(place)
    with pytest.raises(IngotError, match=r"file-not-found.*no joint package"):
        train.load(tmp_path)


@pytest.mark.slow
def test_a_loaded_joint_outlives_its_folder(mlp_package: Path, tmp_path: Path) -> None:
    place = tmp_path / "joint"
    shutil.copytree(mlp_package, place)
    joint = train.load(place)
    x = torch.ones(2, 3, dtype=torch.float64)
    wanted = train.load(mlp_package)(x)
    for file in place.iterdir():
        file.write_bytes(b"")
    assert torch.equal(joint(x), wanted)
    joint.save(tmp_path / "again")
    shutil.rmtree(place)
    assert torch.equal(train.load(tmp_path / "again")(x), wanted)
    joint(x.requires_grad_()).sum().backward()


@pytest.mark.parametrize("kind", ["joint", "regions"])
def test_files_of_the_user_are_not_lost_to_a_package(
    kind: str, package: Path, tmp_path: Path
) -> None:
    place = tmp_path / "work"
    shutil.copytree(package, place)
    (place / "notes.md").write_text("mine")

    def save() -> None:
        if kind == "joint":
            train.load(package).save(place)
        else:
            named: dict[str, Any] = {"mode": "aot", "output": place, "backend": "eager"}
            ingot.regions.compile(mlp(), MODELS["mlp"][1], **named)

    with pytest.raises(IngotError, match=r"notes\.md"):
        save()
    assert (place / "notes.md").read_text() == "mine"
    (place / "notes.md").unlink()
    save()
    assert (place / "graphs.json").exists()


class Overlaid(nn.Module):
    """Buffers and parameters that lie in one another."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.kv: torch.Tensor
        self.k: torch.Tensor
        self.register_buffer("kv", torch.zeros(2, 4))
        self.register_buffer("k", self.kv[0])
        self.inner = nn.Linear(4, 4)
        self.turned = nn.Parameter(self.inner.weight.data.t())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + x @ self.turned + self.k + self.kv.sum()


@pytest.mark.parametrize("kind", ["joint", "regions"])
def test_tensors_that_share_memory_share_it_in_a_package(kind: str, tmp_path: Path) -> None:
    source, x = Overlaid(), torch.randn(2, 4)
    place = tmp_path / "package"
    loaded: Any
    if kind == "joint":
        eager(source, x).save(place)
        loaded = train.load(place)
    else:
        named: dict[str, Any] = {"mode": "aot", "output": place, "backend": "eager"}
        ingot.regions.compile(source, x, **named)
        loaded = ingot.regions.load(place)
    for net in (source, loaded):
        with torch.no_grad():
            net.kv.add_(1)
            net.inner.weight.add_(1)
    torch.testing.assert_close(loaded(x), source(x))
    assert torch.equal(loaded.k, torch.ones(4))
    assert torch.equal(loaded.turned.t(), loaded.inner.weight)


class Wide(nn.Module):
    """Tensors of many kinds, more than a large page of them; two share memory."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(700, 1100))
        self.scale = nn.Parameter(torch.randn(7), requires_grad=False)
        self.register_buffer("rows", self.table.detach()[3:9])
        self.register_buffer("turned", torch.randn(600, 500, dtype=torch.float64).t())
        self.register_buffer("none", torch.empty(0, 4))
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x: Tensor) -> Tensor:
        held: Any = self
        table = self.table[:, :7] * self.scale + held.none.numel()
        return x @ table + held.rows[0, 0] + held.turned[0, 1].float() + held.count


def test_large_tensors_are_the_same_once_loaded(tmp_path: Path) -> None:
    source, x = Wide(), torch.randn(2, 700, requires_grad=True)
    place = tmp_path / "joint"
    joint = eager(source, x)
    for _ in range(2):
        joint.save(place)
        joint = train.load(place)
        found, wanted = joint.state_dict(), source.state_dict()
        for name, value in wanted.items():
            assert torch.equal(found[name], value) and found[name].stride() == value.stride(), name
            assert found[name].dtype == value.dtype and found[name].data_ptr() % 4 == 0
        assert [p.requires_grad for p in joint.parameters()] == [True, False]
        torch.testing.assert_close(joint(x), source(x))
    with torch.no_grad():
        joint.get_parameter("table")[3, 0] = 5.0
    assert joint.get_buffer("rows")[0, 0] == 5.0
    joint(x).sum().backward()
    assert joint.get_parameter("table").grad is not None


def test_a_part_of_a_large_tensor_is_saved_alone(tmp_path: Path) -> None:
    source = nn.Linear(4, 4)
    source.weight = nn.Parameter(torch.randn(4000, 4)[:4])
    eager(source, torch.randn(2, 4)).save(tmp_path / "package")
    assert (tmp_path / "package" / "state.pt").stat().st_size < 4000


def test_what_no_longer_learns_does_not_learn_once_loaded(tmp_path: Path) -> None:
    joint = eager(mlp(), MODELS["mlp"][1])
    dict(joint.named_parameters())["0.weight"].requires_grad_(False)
    joint.save(tmp_path / "package")
    loaded = train.load(tmp_path / "package")
    found = {name: p.requires_grad for name, p in loaded.named_parameters()}
    assert found == {"0.weight": False, "0.bias": True, "2.weight": True, "2.bias": True}
