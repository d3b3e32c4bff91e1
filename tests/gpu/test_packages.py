"""Packages for GPUs, written and run, give what packages for CPUs give, to 1e-9."""

import copy
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch import Tensor

import ingot
from ingot import IngotError
from ingot.cli.main import status
from ingot.drivers import TransientDriver, build_driver, transient_driver
from ingot.execute import History, Transient, executor
from ingot.hit import read
from ingot.model import Factory, build
from ingot.package import Package, compile_model
from ingot.package.seal import digest_of, seal_metadata
from ingot.package.target import Target
from ingot.program import prepared
from ingot.runtime import Artifact, load
from ingot.runtime.loader import metadata_of
from ingot.types import lag
from tests.packages import DECAY, ELASTIC, ORDER, RATE, draw_inputs, written
from tests.runtime.test_sums import TEXT as SUMS
from tests.runtime.test_sums import WEIGHT
from tests.runtime.test_sums import draw as draw_sums

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

CUDA = torch.device("cuda", 0)
CASES = Path(__file__).parents[3] / "shared" / "cases" / "neml2" / "regression"
SOLID = CASES / "solid_mechanics"
PUBLISHED = {
    "isoharden": SOLID / "rate_independent_plasticity" / "isoharden" / "model.i",
    "chaboche": SOLID / "viscoplasticity" / "chaboche" / "model.i",
    "gtn": SOLID / "rate_independent_plasticity" / "gurson" / "model.i",
    "crystal": SOLID / "crystal_plasticity" / "single_crystal_coupled" / "model.i",
    "taylor": SOLID / "crystal_plasticity" / "taylor" / "model.i",
    "mix": SOLID / "km_flow" / "simple_mix" / "model.i",
}
RUNNING = 7
"""A step in the middle of a load path, whose states are given to single calls."""


COMPOSED = """
[Models]
  [decay]
    type = AOTIModel
    artifact_path = '{place}'
  []
  [double]
    type = ScalarLinearCombination
    from = 'total'
    weights = '2'
    to = 'twice'
  []
  [whole]
    type = ComposedModel
    models = 'decay double'
    additional_outputs = 'alpha'
  []
[]
"""


@cache
def home() -> Path:
    return Path(tempfile.mkdtemp(prefix="ingot-gpu-"))


@dataclass(frozen=True)
class Made:
    """A package for both devices, and the driver that it was compiled with, if any."""

    package: Package
    driver: TransientDriver | None

    def load(self, device: str) -> Artifact:
        """The package, loaded afresh."""
        return load(self.package.folders[device != "cpu"], device=device)

    @property
    def gpu(self) -> Path:
        """The folder for GPUs."""
        return self.package.folders[1]


def architecture() -> int:
    major, minor = torch.cuda.get_device_capability()
    return 10 * major + minor


def make(file: Path, model: str | None, folder: str, **target: Any) -> Made:
    """Compile a model of a file, or that of its driver, for both devices."""
    factory = Factory(read(file))
    driver = transient_driver(factory, "driver") if model is None else None
    name = model or (driver and driver.model.name) or ""
    chosen: dict[str, Any] = {"cuda_arch": (architecture(),), "jobs": 4, **target}
    package = compile_model(
        factory, name, Target(output_dir=home() / folder, device=("cpu", "cuda"), **chosen),
        driver=None if driver is None else "driver",
        shapes=None if driver is None else driver.shapes, command="ingot compile",
    )  # fmt: skip
    return Made(package, driver)


@cache
def published(name: str) -> Made:
    """A published model with the blocks of its first output, and all adjoints."""
    if not PUBLISHED[name].exists():
        pytest.skip("the published cases are not beside this checkout")
    model = transient_driver(Factory(read(PUBLISHED[name])), "driver").model
    first = next(iter(model.outputs))
    return make(PUBLISHED[name], None, name, derivative=(f"{first}:",), train=True)


@cache
def decay() -> Made:
    """Two promoted parameters inside an implicit update, blocks, adjoints and a driver."""
    pairs = (":", f":{RATE}", f":{ORDER}")
    file = written(DECAY, home() / "decay")
    return make(
        file, None, "decay/out", parameter=(RATE, ORDER), derivative=pairs, train=True
    )  # fmt: skip


@cache
def elastic() -> Made:
    """A model without any solve, with stored values of five points."""
    file = written(ELASTIC, home() / "elastic")
    return make(file, "elastic", "elastic/out", parameter=("nu",), derivative=(":", ":nu"))


def moved(values: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n: x.to(CUDA) for n, x in values.items()}


def assert_alike(found: dict[str, Tensor], wanted: dict[str, Tensor], close: float = 1e-9) -> None:
    """The same but for rounding, of which a value as small as the noise of others has more."""
    assert found.keys() == wanted.keys() and found
    sizes = {n: float(x.nan_to_num().abs().max()) if x.numel() else 0.0 for n, x in wanted.items()}
    noise = close * 1e-4 * max(sizes.values())
    for n, x in wanted.items():
        assert found[n].device == CUDA, n
        limit = close * sizes[n] + noise
        torch.testing.assert_close(found[n].cpu(), x, rtol=0, atol=limit, equal_nan=True)


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    for n, x in wanted.items():
        torch.testing.assert_close(found[n], x, rtol=0, atol=0, equal_nan=True)


def assert_blocks_alike(found: Any, wanted: Any) -> None:
    assert found.keys() == wanted.keys()
    for output, row in wanted.items():
        assert_alike(found[output], row)


def states_of(made: Made, history: History) -> dict[str, Tensor]:
    """What a step in the middle of a driver's load path is called with."""
    assert made.driver is not None
    given = made.driver.transient.prescribed
    found = {}
    for v in made.package.metadata.inputs:
        base, back = lag(v.name)
        rows = history.outputs[base] if back and base in history.outputs else given.get(base)
        if rows is None:
            rows = torch.zeros(RUNNING + 1, *v.sub_batch, *v.base, dtype=torch.float64)
        found[v.name] = rows[RUNNING - back]
    return found


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_transient_of_a_published_model_is_that_of_the_cpu(name: str) -> None:
    made = published(name)
    assert made.driver is not None
    with torch.no_grad():
        wanted = made.load("cpu").transient(made.driver.transient)
        found = made.load("cuda").transient(made.driver.transient.to(CUDA))
    assert_alike(found.outputs, wanted.outputs)
    for ours, theirs in zip(found.statuses, wanted.statuses, strict=True):
        assert torch.equal(ours.reason.cpu(), theirs.reason)


@pytest.mark.parametrize("name", PUBLISHED)
def test_calls_of_a_published_model_are_those_of_the_cpu(name: str) -> None:
    made = published(name)
    assert made.driver is not None
    theirs, ours = made.load("cpu"), made.load("cuda:0")
    with torch.no_grad():
        inputs = states_of(made, theirs.transient(made.driver.transient))
    check_calls(theirs, ours, inputs)


def check_calls(theirs: Artifact, ours: Artifact, inputs: dict[str, Tensor]) -> None:
    """Values, status, blocks, products and gradients of two artifacts."""
    wanted = theirs(inputs)
    with torch.no_grad():
        assert_alike(ours(moved(inputs)), {n: x.detach() for n, x in wanted.items()})
    for own, other in zip(ours.status, theirs.status, strict=True):
        assert own.reason.device == CUDA and torch.equal(own.reason.cpu(), other.reason)
    if theirs.metadata.derivatives:
        assert_blocks_alike(ours.jacobian(moved(inputs)), theirs.jacobian(inputs))
        along = {n: 1e-3 * torch.ones_like(x) for n, x in inputs.items()}
        assert_alike(ours.jvp(moved(inputs), moved(along)), theirs.jvp(inputs, along))
    bars = {n: torch.ones_like(x).detach() for n, x in wanted.items()}
    if theirs.metadata.adjoints:
        pulled = ours.vjp(moved(inputs), moved(bars))
        assert_alike(pulled, theirs.vjp(inputs, bars))
        if theirs.metadata.parameters:
            found = ours.param_vjp(moved(inputs), moved(bars))
            assert_alike(found, theirs.param_vjp(inputs, bars))
        check_autograd(theirs, ours, inputs)


def check_autograd(theirs: Artifact, ours: Artifact, inputs: dict[str, Tensor]) -> None:
    slopes = []
    for artifact, given in ((theirs, inputs), (ours, moved(inputs))):
        leaves = {n: x.detach().clone().requires_grad_() for n, x in given.items()}
        by = {**leaves, **dict(artifact.named_parameters())}
        loss = sum((y**2).sum() for y in artifact(leaves).values())
        assert isinstance(loss, Tensor)
        slopes.append(dict(zip(by, torch.autograd.grad(loss, [*by.values()]), strict=True)))
    assert_alike(slopes[1], slopes[0])


def test_promoted_parameters_act_and_have_gradients() -> None:
    theirs, ours = decay().load("cpu"), decay().load("cuda")
    inputs = draw_inputs(theirs.inputs, 3, 7)
    for value in (4.0, 4.5):
        for artifact in (theirs, ours):
            artifact.set_parameter("coefficient.reference_value", value)
        check_calls(theirs, ours, inputs)
    each = torch.linspace(4, 4.5, 7, dtype=torch.float64)
    theirs.set_parameter(RATE, each)
    ours.set_parameter(RATE, each.to(CUDA))
    check_calls(theirs, ours, inputs)
    ours.set_parameter(RATE, np.array(4.0))
    assert dict(ours.named_parameters())[RATE].device == CUDA
    with pytest.raises(IngotError, match=r"is on cpu, the package runs on cuda:0"):
        ours.set_parameter(RATE, torch.tensor(4.0, dtype=torch.float64))
    theirs.set_parameter(RATE, 4.0)
    assert_blocks_alike(ours.param_jacobian(moved(inputs)), theirs.param_jacobian(inputs))


def test_a_model_without_solves_and_with_stored_values_is_right() -> None:
    theirs, ours = elastic().load("cpu"), elastic().load("cuda")
    for batch in ((5,), (3, 5), (1,), ()):
        inputs = draw_inputs(theirs.inputs, *batch)
        with torch.no_grad():
            check_calls(theirs, ours, inputs)
    none = torch.zeros(0, 5, 6, dtype=torch.float64, device=CUDA)
    assert ours({"strain": none})["stress"].shape == (0, 5, 6)


def test_a_model_that_sums_over_points_is_right() -> None:
    text = SUMS.replace("{more}", " apart").replace("{gives}", " T")
    file = written(text, home() / "sums")
    made = make(file, "whole", "sums/out", parameter=(WEIGHT,), train=True)
    theirs, ours = made.load("cpu"), made.load("cuda")
    check_calls(theirs, ours, draw_sums((5,)))
    live = executor(prepared(build(read(file), "whole"), {}), "kernel", device=CUDA)
    wanted = theirs(draw_sums((5,)))
    assert_alike(live(moved(draw_sums((5,))))[0], {n: x.detach() for n, x in wanted.items()})


def test_a_package_is_a_part_of_a_model_on_a_gpu(tmp_path: Path) -> None:
    place = decay().package.folder.parent
    before = DECAY[: DECAY.index("[Models]")].replace("'decay'", "'whole'")
    file = written(f"{before}{COMPOSED.format(place=place)}", tmp_path)
    found = []
    for device in ("cpu", "cuda"):
        driver = build_driver(read(file), "driver", device=device)
        assert isinstance(driver, TransientDriver)
        found.append(driver.run("kernel").outputs)
    assert found[0].keys() == {"alpha", "twice"}
    for n, x in found[0].items():
        torch.testing.assert_close(found[1][n], x, rtol=1e-9, atol=1e-12)


def test_single_precision_is_near() -> None:
    text = DECAY.replace("1e-10", "1e-5").replace("1e-12", "1e-5")
    file = written(text, home() / "single")
    made = make(file, None, "single/out", dtype="float32", parameter=(RATE,))
    theirs, ours = made.load("cpu"), made.load("cuda")
    inputs = {n: x.float() for n, x in draw_inputs(theirs.inputs, 50).items()}
    with torch.no_grad():
        assert_alike(ours(moved(inputs)), theirs(inputs), 1e-4)
    with pytest.raises(IngotError, match="is float64, the package computes in float32"):
        ours({n: x.double() for n, x in moved(inputs).items()})


def test_a_driver_runs_the_stub_on_a_gpu(tmp_path: Path, capsys: Any) -> None:
    for name, made in {"chaboche": published("chaboche"), "decay": decay()}.items():
        found = {}
        for device in ("cpu", "cuda"):
            file = tmp_path / f"{name}-{device}.npz"
            words = ["run", str(made.package.stub), "driver", "--device", device, "--save"]
            assert status([*words, str(file)]) == 0, capsys.readouterr().err
            with np.load(file) as stored:
                found[device] = {n: stored[n] for n in stored.files}
        assert found["cpu"].keys() == found["cuda"].keys() and len(found["cpu"]) > 5
        for key, x in found["cpu"].items():
            if x.dtype.kind == "U":  # what the run was, its seconds included
                continue
            size = np.abs(np.nan_to_num(x)).max() if x.size else 0.0
            # a residual that has converged is what rounding leaves, which differs by its last bits
            noise = 1e-9 if key.endswith("/residual") else 1e-12
            np.testing.assert_allclose(found["cuda"][key], x, rtol=0, atol=1e-9 * size + noise)


def test_a_fresh_process_loads_and_runs_it_without_any_compiler() -> None:
    made = published("isoharden")
    assert made.driver is not None
    place = home() / "alone"
    shutil.copytree(made.gpu, place, dirs_exist_ok=True)
    code = f"""
import sys, torch
from ingot.codegen import nvrtc
nvrtc._find_candidates = lambda: iter(())
import ingot.runtime
artifact = ingot.runtime.load({str(place)!r}, device="cuda:0")
shapes = {{n: (4, *v.sub_batch, *v.base) for n, v in artifact.inputs.items()}}
inputs = {{n: torch.full(s, 1e-3, dtype=torch.float64, device="cuda") for n, s in shapes.items()}}
inputs["t~1"] *= 0
with torch.no_grad():
    outputs = artifact(inputs)
assert all(x.isfinite().all() for x in outputs.values())
assert nvrtc.open_nvrtc.cache_info().currsize == 0
print(*(m for m in ("nmhit", "cyclopts", "scipy", "ingot.program", "ingot.catalog")
        if m in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": "", "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "\n"


def test_streams_are_respected() -> None:
    artifact = decay().load("cuda")
    inputs = moved(draw_inputs(artifact.inputs, 256))
    with torch.no_grad():
        wanted = artifact(inputs)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(10_000_000)
            found = artifact({n: x + 0 for n, x in inputs.items()})
    side.synchronize()
    assert_same(found, wanted)


def test_a_call_is_part_of_a_cuda_graph_and_waits_for_nothing() -> None:
    artifact = decay().load("cuda")
    inputs = moved(draw_inputs(artifact.inputs, 64))
    bars = {n: torch.ones_like(x) for n, x in artifact(inputs).items()}
    driver = decay().driver
    assert driver is not None
    with torch.no_grad():
        steps = artifact.arrange(driver.transient.to(CUDA))
    calls = (
        lambda: artifact(inputs),
        lambda: steps().outputs,
        lambda: artifact.jvp(inputs, inputs),
        lambda: artifact.vjp(inputs, bars),
    )
    with torch.no_grad():
        for call in calls:
            wanted = call()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):  # refuses whatever would wait
                found = call()
            graph.replay()
            torch.cuda.synchronize()
            assert_same(found, wanted)


def test_points_that_fail_are_nan_and_told_by_the_status() -> None:
    stub = decay().package.stub
    assert stub is not None
    few = stub.with_name("few_aoti.i")
    few.write_text(stub.read_text().replace("max_its = 25", "max_its = 1"))
    theirs, ours = load(few), load(few, device="cuda")
    inputs = draw_inputs(theirs.inputs, 6)
    bars = {n: torch.ones_like(x).detach() for n, x in theirs(inputs).items()}
    with torch.no_grad():
        assert_alike(ours(moved(inputs)), theirs(inputs))
    assert not ours.status[0].converged.any()
    assert_blocks_alike(ours.jacobian(moved(inputs)), theirs.jacobian(inputs))
    pulled = ours.vjp(moved(inputs), moved(bars))
    assert_alike(pulled, theirs.vjp(inputs, bars))
    assert pulled["T"].isnan().all()
    none = {n: torch.zeros_like(x) for n, x in bars.items()}
    assert not ours.vjp(moved(inputs), moved(none))["T"].any()


def test_a_tensor_elsewhere_is_refused_and_both_are_named() -> None:
    artifact = decay().load("cuda")
    inputs = draw_inputs(artifact.inputs, 4)
    mixed = {**moved(inputs), "T": inputs["T"]}
    for call in (artifact, artifact.jacobian, lambda x: artifact.jvp(moved(inputs), x)):
        with pytest.raises(IngotError, match="'T' is on cpu, the package runs on cuda:0"):
            call(mixed)
    with torch.no_grad(), pytest.raises(IngotError, match="is on cpu, the package runs on cuda:0"):
        artifact.transient(Transient(3, {"t": torch.zeros(3).double()}, {}))
    with pytest.raises(IngotError, match="'T' is on cuda:0, the package runs on cpu"):
        decay().load("cpu")({**inputs, "T": inputs["T"].to(CUDA)})
    with pytest.raises(IngotError, match="is on cpu, the package runs on cuda:0"):
        artifact({n: x.numpy() for n, x in inputs.items()})
    with pytest.raises(IngotError, match="the package runs on cuda:0, not on cpu"):
        artifact.cpu()
    again = copy.deepcopy(artifact.cuda())
    assert again.device == artifact.device == CUDA
    count = torch.cuda.device_count()
    with pytest.raises(IngotError, match=rf"there is no device 'cuda:{count}': torch sees {count}"):
        load(decay().gpu, device=f"cuda:{count}")


def spoiled(place: Path, content: bytes) -> None:
    """A copy of a package whose machine code is another, sealed again."""
    shutil.copytree(decay().gpu, place)
    meta, _ = metadata_of(place, "cuda")
    assert meta.kernel is not None
    for name in meta.kernel.libraries.values():
        (place / name).write_bytes(content)
    digests = {name: digest_of(place / name) for name in meta.digests}
    sealed = seal_metadata(msgspec.structs.replace(meta, digests=digests))
    (place / "decay_meta.json").write_bytes(sealed)


def test_spoiled_bytes_are_refused_and_the_process_lives(tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(decay().gpu, place)
    for file in sorted(place.iterdir()):
        content = file.read_bytes()
        middle = len(content) // 2
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        with pytest.raises(IngotError):
            load(place, device="cuda")
        file.write_bytes(content)
    load(place, device="cuda")
    (other,) = published("isoharden").gpu.glob("*.cubin")
    for name, content in {"noise": b"nothing", "other": other.read_bytes()}.items():
        spoiled(tmp_path / name, content)
        with pytest.raises(IngotError, match=r"error\[(broken-package|wrong-architecture)\]"):
            load(tmp_path / name, device="cuda")
    test_streams_are_respected()


def test_a_loaded_package_runs_its_own_bytes(tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(decay().gpu, place)
    artifact = load(place, device="cuda")
    inputs = moved(draw_inputs(artifact.inputs, 32))
    wanted = {n: x.detach() for n, x in artifact(inputs).items()}
    shutil.rmtree(place)
    assert_same(artifact(inputs), wanted)


def test_two_packages_in_one_process_do_not_meet() -> None:
    first, second = decay().load("cuda"), elastic().load("cuda")
    again = decay().load("cuda")
    again.set_parameter(RATE, 5.0)
    given = moved(draw_inputs(first.inputs, 20))
    strain = moved(draw_inputs(second.inputs, 5))
    with torch.no_grad():
        wanted = [first(given), second(strain), again(given)]
        found = [first(given), second(strain), again(given)]
    for ours, theirs in zip(found, wanted, strict=True):
        assert_same(ours, theirs)
    assert not torch.equal(wanted[0]["total"], wanted[2]["total"])


def test_memory_that_runs_out_is_told_and_the_process_lives() -> None:
    artifact = elastic().load("cuda")
    strain = torch.zeros(1, 1, 6, dtype=torch.float64, device=CUDA).expand(1 << 33, 5, 6)
    with torch.no_grad():
        with pytest.raises(IngotError, match=r"no-device-memory.*Tried to allocate.*GPU 0 has"):
            artifact({"strain": strain})
        assert artifact({"strain": strain[:2]})["stress"].shape == (2, 5, 6)


def test_ptx_runs_on_gpus_that_are_newer(tmp_path: Path) -> None:
    file = written(ELASTIC, tmp_path)
    target = Target(output_dir=tmp_path / "out", device=("cuda",), cuda_arch=(75,))
    if architecture() < 80:
        pytest.skip("no GPU that is newer")
    package = compile_model(read(file), "elastic", target, command="ingot compile")
    artifact = load(package.folder, device="cuda")
    inputs = draw_inputs(artifact.inputs, 5)
    with torch.no_grad():
        assert_alike(artifact(moved(inputs)), elastic().load("cpu")(inputs))
    (package.folder / "elastic-compute_75.ptx").unlink()
    meta, _ = metadata_of(package.folder, "cuda")
    assert meta.kernel is not None
    with pytest.raises(IngotError, match=r"'elastic-compute_75.ptx' is missing"):
        load(package.folder, device="cuda")
    alone = Target(
        output_dir=tmp_path / "alone", device=("cuda",), cuda_arch=(75,), baseline=False
    )  # fmt: skip
    package = compile_model(read(file), "elastic", alone, command="ingot compile")
    own = architecture()
    with pytest.raises(IngotError, match=rf"holds sm_75; 'cuda:0' is sm_{own}.*\n.*arch {own}"):
        load(package.folder, device="cuda")


def test_a_model_is_compiled_in_process_for_a_gpu() -> None:
    file = written(ELASTIC, home() / "in_process")
    ours = ingot.compile(build(read(file), "elastic"), derivative=(":",), device="cuda")
    theirs = elastic().load("cpu")
    inputs = draw_inputs(theirs.inputs, 5)
    with torch.no_grad():
        assert_alike(ours(moved(inputs)), theirs(inputs))


def test_commands_verify_and_inspect_it(capsys: Any) -> None:
    assert status(["package", "verify", str(decay().gpu.parent)]) == 0
    assert capsys.readouterr().out.endswith("files are as they were compiled, and load\n")
    assert status(["inspect", str(decay().gpu)]) == 0
    assert f"for sm_{architecture()}, compute_{architecture()}" in capsys.readouterr().out
