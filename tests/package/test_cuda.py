"""Packages for GPUs: what is written without one, what is refused; and their kernels, run by this
process as C++, give what packages for CPUs give.
"""

import json
import shutil
import sys
from functools import cache
from pathlib import Path

import msgspec
import pytest
import torch
from torch import Tensor

from ingot import IngotError
from ingot.cli.main import status
from ingot.codegen import cuda, nvrtc
from ingot.codegen.architectures import choose_target, name_targets
from ingot.drivers import transient_driver
from ingot.execute import Transient, devices
from ingot.hit import read
from ingot.model import Factory
from ingot.package import Package, compile_model, write
from ingot.package.consistent import find_inconsistencies
from ingot.package.seal import seal
from ingot.package.target import Target
from ingot.runtime import Artifact, load
from ingot.runtime.loader import metadata_of
from tests import packages
from tests.codegen.on_gpu import stand_in, write_source_as_code
from tests.packages import DECAY, ELASTIC, ORDER, RATE, inputs_of, written
from tests.runtime.test_sums import TEXT as SUMS
from tests.runtime.test_sums import WEIGHT, summed
from tests.runtime.test_sums import draw as draw_sums

Captured = pytest.CaptureFixture[str]


def compiled(text: str, name: str, folder: Path, driver: str = "", **target: object) -> Package:
    """A package for GPUs that holds its source as machine code."""
    factory = Factory(read(written(text, folder)))
    shapes = transient_driver(factory, driver).shapes if driver else None
    chosen = Target(output_dir=folder / "out", device=("cuda",), **target)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        write_source_as_code(patch)
        return compile_model(
            factory, name, chosen, driver=driver or None, shapes=shapes, command="ingot compile"
        )


@cache
def decay(home: Path) -> Package:
    pairs = (":", f":{RATE}", f":{ORDER}")
    return compiled(
        DECAY, "decay", home, "driver", parameter=(RATE, ORDER), derivative=pairs, train=True
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda")


@pytest.fixture
def gpu(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process in the place of a GPU."""
    stand_in(monkeypatch, home)


def assert_alike(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    for name, x in wanted.items():
        torch.testing.assert_close(found[name], x, rtol=1e-9, atol=1e-12, equal_nan=True)


# what it gives


def test_a_package_for_gpus_gives_what_one_for_cpus_gives(home: Path, gpu: None) -> None:
    ours, theirs = load(decay(home).folder, device="cuda"), packages.decay().artifact("kernel")
    adjoint = packages.trained().artifact()
    inputs = inputs_of(packages.decay(), 3, 7)
    assert_alike(ours(inputs), theirs(inputs))
    for own, other in zip(ours.status, theirs.status, strict=True):
        assert torch.equal(own.reason, other.reason)
        assert torch.equal(own.iterations, other.iterations)
    for calls in ("jacobian", "param_jacobian"):
        blocks, wanted = getattr(ours, calls)(inputs), getattr(theirs, calls)(inputs)
        assert blocks.keys() == wanted.keys() and len(wanted)
        for output, row in wanted.items():
            assert_alike(blocks[output], row)
    along = {n: torch.ones_like(x) for n, x in inputs.items()}
    assert_alike(ours.jvp(inputs, along), theirs.jvp(inputs, along))
    bars = {n: torch.ones_like(x) for n, x in theirs(inputs).items()}
    assert_alike(ours.vjp(inputs, bars), adjoint.vjp(inputs, bars))
    assert_alike(ours.param_vjp(inputs, bars), adjoint.param_vjp(inputs, bars))


def test_autograd_passes_through_it(home: Path, gpu: None) -> None:
    ours, theirs = load(decay(home).folder, device="cuda"), packages.trained().artifact()
    found = []
    for artifact in (ours, theirs):
        inputs = {n: x.requires_grad_() for n, x in inputs_of(packages.decay(), 5).items()}
        artifact.set_parameter(RATE, 4.5)
        artifact(inputs)["total"].square().sum().backward()
        parameters = dict(artifact.named_parameters())
        found.append({n: x.grad for n, x in {**inputs, **parameters}.items() if x.grad is not None})
    assert found[1].keys() >= {RATE, ORDER, "T"}
    assert_alike(*found)


def test_a_transient_is_one_call(home: Path, gpu: None) -> None:
    times = torch.linspace(0, 2, 6, dtype=torch.float64)[:, None].expand(-1, 4)
    given = {"t": times, "T": 900 + 50 * times, "extra": times}
    transient = Transient(6, given, {"alpha": torch.full((4,), 0.05, dtype=torch.float64)})
    ours, theirs = load(decay(home).folder, device="cuda"), packages.trained().artifact()
    with torch.no_grad():
        histories = [artifact.transient(transient) for artifact in (ours, theirs)]
    assert_alike(histories[0].outputs, histories[1].outputs)
    own, other = (h.statuses[0].iterations for h in histories)
    assert torch.equal(own, other) and own.shape == (5, 4)


def test_stored_values_and_other_rules_act(home: Path, gpu: None) -> None:
    package = compiled(ELASTIC, "elastic", home / "elastic", parameter=("nu",), derivative=(":",))
    ours, theirs = load(package.folder, device="cuda"), packages.elastic().artifact("kernel")
    inputs = inputs_of(packages.elastic(), 5)
    for value in (0.3, 0.25):
        for artifact in (ours, theirs):
            artifact.set_parameter("nu", value)
        assert_alike(ours(inputs), theirs(inputs))
    assert_alike(ours.jacobian(inputs)["stress"], theirs.jacobian(inputs)["stress"])
    stub = decay(home).stub
    assert stub is not None
    few = stub.with_name("few_aoti.i")
    few.write_text(stub.read_text().replace("max_its = 25", "max_its = 1"))
    strict: Artifact = load(few, device="cuda")
    outputs = strict(inputs_of(packages.decay(), 5))
    assert not strict.status[0].converged.any() and outputs["total"].isnan().all()


@pytest.mark.exhaustive
def test_sums_over_points_are_cut_as_for_cpus(home: Path, gpu: None) -> None:
    text = SUMS.replace("{more}", " apart").replace("{gives}", " T")
    package = compiled(text, "whole", home / "sums", parameter=(WEIGHT,), train=True)
    ours, inputs = load(package.folder, device="cuda"), draw_sums((5,))
    wanted = summed()(inputs)
    assert_alike(ours(inputs), wanted)
    bars = {n: torch.ones_like(x) for n, x in wanted.items()}
    assert_alike(ours.vjp(inputs, bars), summed().vjp(inputs, bars))


# what is written


def test_every_file_is_named_and_sealed(home: Path) -> None:
    folder = decay(home).folder
    meta, _ = metadata_of(folder.parent, "cuda:1")
    names = {"sm_80": "decay-sm_80.cubin", "sm_90": "decay-sm_90.cubin"}
    assert meta.kernel is not None and meta.inductor is None and meta.device == "cuda"
    assert meta.kernel.libraries == {**names, "compute_90": "decay-compute_90.ptx"}
    assert (meta.kernel.source, meta.kernel.header) == ("decay.cu", None)
    assert sorted(meta.digests) == sorted(meta.files) == sorted(
        file.name for file in folder.iterdir() if file.suffix != ".json"
    )  # fmt: skip
    source = (folder / "decay.cu").read_text()
    assert "ingot contract" in source.splitlines()[-1]
    assert '#include "' not in source and f"{meta.kernel.prefix}_##entry" in source


def test_a_spoiled_file_is_refused(home: Path, gpu: None, tmp_path: Path) -> None:
    for file in decay(home).folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    load(tmp_path, device="cuda")
    for name in ("decay-sm_90.cubin", "decay-compute_90.ptx", "decay.cu"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-9] + b"x" + content[-8:])
        with pytest.raises(IngotError, match=f"'{name}' was changed after it was compiled"):
            load(tmp_path, device="cuda")
        (tmp_path / name).write_bytes(content)
    file = tmp_path / "decay_meta.json"
    meta = json.loads(file.read_text())
    meta["kernel"]["prefix"] = "other"
    file.write_bytes(seal(msgspec.json.encode(meta)))
    with pytest.raises(IngotError, match="compiled with other metadata than lies beside it"):
        load(tmp_path, device="cuda")


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("header", "decay.h", "a kernel for cuda has a header"),
        ("libraries", {"sm_x": "a.cubin"}, "'sm_x' is no architecture of a GPU"),
        ("libraries", {"x86-64-v3": "a.so"}, "'x86-64-v3' is no architecture of a GPU"),
        ("libraries", {}, "the kernel has no library"),
    ],
)
def test_metadata_agrees_with_its_device(home: Path, key: str, value: object, told: str) -> None:
    meta = decay(home).metadata
    assert not list(find_inconsistencies(meta)) and meta.kernel is not None
    wrong = msgspec.structs.replace(meta.kernel, **{key: value})
    assert told in list(find_inconsistencies(msgspec.structs.replace(meta, kernel=wrong)))


def test_commands_tell_of_it(home: Path, capsys: Captured) -> None:
    package = decay(home)
    assert status(["inspect", str(package.folder)]) == 0
    said = capsys.readouterr().out
    assert "float64 on cuda" in said and "for sm_80, sm_90, compute_90" in said
    assert status(["package", "verify", str(package.folder), "--untrusted"]) == 0
    assert status(["inspect", str(package.stub)]) == 0
    assert "devices" not in capsys.readouterr().out
    both = bars(home)["soft"] / "bar"
    assert status(["inspect", str(both)]) == 0
    said = capsys.readouterr().out
    assert "float64 on cpu" in said and "devices  cpu, cuda; name a folder for another" in said
    assert status(["inspect", str(both), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["devices"] == ["cpu", "cuda"]


# what is chosen and refused


@pytest.mark.parametrize(
    ("capability", "held", "chosen"),
    [
        ((9, 0), ("sm_80", "sm_90", "compute_90"), "sm_90"),
        ((8, 9), ("sm_80", "sm_90", "compute_90"), "sm_80"),
        ((8, 6), ("sm_80", "sm_86", "compute_86"), "sm_86"),
        ((10, 0), ("sm_80", "sm_90", "compute_90"), "compute_90"),
        ((12, 0), ("sm_100", "compute_80", "compute_100"), "compute_100"),
        ((7, 5), ("sm_80", "compute_80"), None),
        ((8, 0), ("sm_86",), None),
        ((10, 0), ("sm_90",), None),
    ],
)
def test_a_gpu_runs_the_best_that_it_can(
    capability: tuple[int, int], held: tuple[str, ...], chosen: str | None
) -> None:
    assert choose_target(held, capability) == chosen


def test_the_newest_is_written_as_ptx_too() -> None:
    assert name_targets((90, 80, 90), portable=True) == ("sm_80", "sm_90", "compute_90")
    assert name_targets((86,), portable=False) == ("sm_86",)


def test_what_the_driver_does_not_take_is_named(
    home: Path, gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(code: bytes, device: torch.device) -> None:
        monkeypatch.setattr(cuda, "read_status", lambda status: "CUDA: an old driver")
        cuda._check(222)

    monkeypatch.setattr(sys.modules["ingot.runtime.loader"], "open_functions", refuse)
    with pytest.raises(IngotError, match=r"old-driver.*'decay-sm_90.cubin' is refused by CUDA: an"):
        load(decay(home).folder, device="cuda")


def test_a_gpu_that_it_holds_no_code_for_is_refused(
    home: Path, gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    with pytest.raises(IngotError) as refused:
        load(decay(home).folder, device="cuda")
    assert str(refused.value) == (
        "error[wrong-architecture]: the package holds sm_80, sm_90, compute_90; 'cpu' is sm_75"
        " (a GPU)\n  fix: compile with --cuda-arch 75"
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_is_written_and_not_loaded(home: Path, capsys: Captured) -> None:
    folder = decay(home).folder
    with pytest.raises(IngotError) as refused:
        load(folder, device="cuda:1")
    (problem,) = refused.value.problems
    assert problem.code == "no-device" and problem.fix == (
        "load its folder for the CPU, device='cpu', which --device cpu cuda writes"
    )
    assert problem.message == f"there is no device 'cuda:1': {devices.tell_no_gpu()}"
    with pytest.raises(IngotError, match="the package runs on cuda, not on cpu"):
        load(folder)
    with pytest.raises(IngotError, match="holds a package for cuda, not for 'cpu'") as wrong:
        load(folder.parent, device=torch.device("cpu"))
    assert wrong.value.problems[0].fix == (
        "compile it for both: ingot compile FILE --device cpu cuda"
    )
    with pytest.raises(IngotError, match="a device is named by a string, not by 3"):
        load(folder, device=3)  # type: ignore[arg-type]
    with pytest.raises(IngotError, match="no device 'cpu:3'"):
        devices.require_device("cpu:3")
    assert status(["package", "verify", str(folder)]) == 0
    assert "as they were compiled; code for cuda is not loaded" in capsys.readouterr().out


def test_folders_that_do_not_hold_what_their_name_says_are_refused(
    home: Path, tmp_path: Path, capsys: Captured
) -> None:
    shutil.copytree(decay(home).folder, tmp_path / "p" / "cpu")
    shutil.copytree(decay(home).folder, tmp_path / "p" / "cuda")
    assert status(["package", "verify", str(tmp_path / "p")]) == 1
    assert "cpu/: the folder 'cpu' holds a package for cuda" in capsys.readouterr().err
    (tmp_path / "p" / "cpu" / "decay_meta.json").unlink()
    assert status(["package", "verify", str(tmp_path / "p")]) == 1
    assert "no package in" in capsys.readouterr().err


def test_a_folder_that_a_compile_did_not_come_to_is_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    old = tmp_path / "p"
    shutil.copytree(decay(home).folder, old / "cuda")

    def scratch(name: str) -> Path:
        return shutil.copytree(decay(home).folder, tmp_path / name)

    with monkeypatch.context() as patch:
        taken = iter([write.put])

        def put_one(folder: Path, place: Path) -> None:
            next(taken)(folder, place)

        patch.setattr(write, "put", put_one)
        with pytest.raises(StopIteration):
            write.put_all({old / "cpu": scratch("a"), old / "cuda": scratch("b")})
    assert write.find_older(old) == {"cuda"}
    with pytest.raises(IngotError, match="cuda is older than what stands beside it"):
        metadata_of(old, "cuda")
    with pytest.raises(IngotError, match="cuda is older than what stands beside it"):
        metadata_of(old / "cuda", "cuda")
    assert metadata_of(old / "cpu", "cpu")[1] == old / "cpu"
    assert status(["package", "verify", str(old)]) == 1
    assert "cuda/: " in capsys.readouterr().err
    write.put_all({old / "cuda": scratch("c")})
    assert metadata_of(old, "cuda")[1] == old / "cuda" and not (old / write.OLDER).exists()


BAR = """
[Models]
  [bar]
    type = LinearIsotropicElasticity
    coefficients = '200000 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
"""


@cache
def bars(home: Path) -> dict[str, Path]:
    """Folders of stubs: a bar, a stiffer one, and others that differ as their names say."""
    stiff = BAR.replace("200000", "300000")
    asked = {
        "soft": (BAR, {}), "stiff": (stiff, {}),
        "single": (BAR, {"dtype": "float32"}), "slopes": (BAR, {"derivative": ("stress:strain",)}),
    }  # fmt: skip
    found: dict[str, Path] = {}
    for name, (text, target) in asked.items():
        for device in ("cpu", "cuda"):
            package = compile_bar(text, home / name, device, **target)
            found[name] = package.folder.parents[1]
    return found


def compile_bar(text: str, folder: Path, *devices: str, **target: object) -> Package:
    """A package whose machine code for GPUs is its source, beside those of other devices."""
    chosen = Target(output_dir=folder / "out", device=devices, baseline=False, **target)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        write_source_as_code(patch)
        return compile_model(read(written(text, folder)), "bar", chosen, command="ingot compile")


def test_one_model_compiled_for_each_device_in_turn_is_one_package(home: Path) -> None:
    out = bars(home)["soft"]
    assert load(out / "bar_aoti.i").metadata.device == "cpu" and not write.find_older(out / "bar")
    assert status(["package", "verify", str(out / "bar_aoti.i")]) == 0
    assert metadata_of(out / "bar", "cuda")[0].device == "cuda"
    assert status(["inspect", str(out / "bar_aoti.i")]) == 0


@pytest.mark.parametrize("other", ["stiff", "single", "slopes"])
@pytest.mark.parametrize("new", ["cpu", "cuda"])
def test_folders_that_are_not_of_one_program_are_refused(
    home: Path, tmp_path: Path, other: str, new: str, capsys: Captured
) -> None:
    shutil.copytree(bars(home)["soft"], tmp_path, dirs_exist_ok=True)
    stub, place = tmp_path / "bar_aoti.i", tmp_path / "bar"
    shutil.rmtree(place / new)
    shutil.copytree(bars(home)[other] / "bar" / new, place / new)
    for each in (stub, place):
        with pytest.raises(IngotError, match=r"cpu and .*cuda beside it differ in their models"):
            load(each)
        for command in (["inspect"], ["package", "verify"]):
            assert status([*command, str(each)]) == 1
            assert "differ in their models" in capsys.readouterr().err
    assert load(place / "cpu").metadata.device == "cpu"
    assert status(["package", "verify", str(place / "cuda")]) == 0
    shutil.rmtree(place / ({"cpu", "cuda"} - {new}).pop())
    assert status(["package", "verify", str(place)]) == 0
    for command in (["inspect"], ["package", "verify"]):
        assert status([*command, str(stub)]) == 1
        told = capsys.readouterr().err
        assert f"the package 'bar' for {new} is of another model" in told and "program = " in told
    if new == "cpu":
        with pytest.raises(IngotError, match="remove 'program' from the stub"):
            load(stub)
        lines = stub.read_text().splitlines(keepends=True)
        stub.write_text("".join(line for line in lines if "program = " not in line))
        assert load(stub).metadata.device == "cpu"


def test_what_was_not_compiled_again_is_older(home: Path, tmp_path: Path) -> None:
    shutil.copytree(bars(home)["soft"], tmp_path / "out")
    place, stub = tmp_path / "out" / "bar", tmp_path / "out" / "bar_aoti.i"
    compile_bar(BAR.replace("200000", "300000"), tmp_path, "cuda")
    assert write.find_older(place) == {"cpu"}
    for each in (stub, place, place / "cpu"):
        with pytest.raises(IngotError, match="older than what stands beside it: the last compile"):
            load(each)
    assert metadata_of(place, "cuda")[0].device == "cuda"
    compile_bar(BAR, tmp_path, "cuda")
    assert not write.find_older(place) and load(stub).metadata.device == "cpu"


def test_a_stub_takes_what_is_there_where_a_compile_ends_before_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(bars(home)["soft"], tmp_path / "out")
    stub = tmp_path / "out" / "bar_aoti.i"
    edited = stub.read_text().replace("[Models]", "# by hand\n[Models]")
    stub.write_text(edited)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    for modulus in ("300000", "400000"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(write, "put_all", stop)
            compile_bar(BAR.replace("200000", modulus), tmp_path, "cpu", "cuda")
    assert load(stub).metadata.device == "cpu" and "# by hand" in stub.read_text()
    shutil.rmtree(tmp_path / "out" / "bar")
    shutil.copytree(bars(home)["stiff"] / "bar", tmp_path / "out" / "bar")
    assert load(stub).metadata.device == "cpu"
    shutil.rmtree(tmp_path / "out" / "bar")
    shutil.copytree(bars(home)["slopes"] / "bar", tmp_path / "out" / "bar")
    with pytest.raises(IngotError, match="than the stub was written for"):
        load(stub)
    compile_bar(BAR, tmp_path, "cpu", "cuda")
    program = load(stub).metadata.origin.program
    assert f"program = {program}\n" in stub.read_text()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"origin": 3}', '{"origin": {}}', "\0"])
def test_what_tells_no_program_hinders_nothing(home: Path, tmp_path: Path, content: str) -> None:
    shutil.copytree(bars(home)["soft"] / "bar", tmp_path / "bar")
    (tmp_path / "bar" / "cuda" / "bar_meta.json").write_text(content)
    assert load(tmp_path / "bar").metadata.device == "cpu"
    shutil.rmtree(tmp_path / "bar" / "cuda")
    assert load(tmp_path / "bar").metadata.device == "cpu"


def test_targets_that_compile_nothing_are_refused() -> None:
    assert Target(device="cuda").device == ("cuda",)  # type: ignore[arg-type]
    with pytest.raises(IngotError, match="--cuda-arch names GPUs, and no package for them"):
        Target(device=("cpu",), cuda_arch=(90,))


def test_a_compiler_that_does_not_load_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "libnvrtc.so.12"
    broken.write_text("no library")
    monkeypatch.setattr(nvrtc, "_find_candidates", lambda: iter([str(broken)]))
    nvrtc.open_nvrtc.cache_clear()
    try:
        with pytest.raises(IngotError, match=r"does not load: .*libnvrtc\.so\.12"):
            nvrtc.open_nvrtc()
    finally:
        nvrtc.open_nvrtc.cache_clear()


def test_graphs_for_gpus_are_refused_by_name() -> None:
    with pytest.raises(IngotError, match="--backend inductor --device cuda: torch compiles graphs"):
        Target(device=("cpu", "cuda"), backend=("kernel", "inductor"))


def test_without_a_compiler_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvrtc, "_find_candidates", lambda: iter(["libnothing.so"]))
    nvrtc.open_nvrtc.cache_clear()
    target = Target(output_dir=tmp_path / "out", device=("cpu", "cuda"))
    try:
        with pytest.raises(IngotError, match=r"no CUDA compiler \(libnvrtc\) is installed"):
            compile_model(read(written(ELASTIC, tmp_path)), "elastic", target)
    finally:
        nvrtc.open_nvrtc.cache_clear()
    assert not (tmp_path / "out").exists()


def test_a_tensor_elsewhere_is_refused_and_both_are_named(home: Path, gpu: None) -> None:
    artifact = load(decay(home).folder, device="cuda")
    inputs = inputs_of(packages.decay(), 3)
    moved = {**inputs, "T": inputs["T"].to("meta")}
    for call in (artifact, artifact.jacobian):
        with pytest.raises(IngotError, match="'T' is on meta, the package runs on cpu"):
            call(moved)


@pytest.mark.parametrize(
    ("number", "code"), [(2, "no-device-memory"), (222, "old-driver"), (209, "wrong-architecture")]
)
def test_what_the_driver_refuses_is_told_with_a_remedy(
    number: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "read_status", lambda status: f"CUDA: status {status}")
    with pytest.raises(IngotError, match=f"CUDA: status {number}") as refused:
        cuda._check(number)
    (problem,) = refused.value.problems
    assert problem.code == code and problem.fix


def test_memory_that_runs_out_is_told(
    home: Path, gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = load(decay(home).folder, device="cuda")
    inputs = inputs_of(packages.decay(), 3)

    def find_none(*_: object, **__: object) -> Tensor:
        told = "CUDA out of memory. Tried to allocate 2.00 TiB. GPU 0 has 1.00 GiB free. And so on."
        raise torch.OutOfMemoryError(told)

    with monkeypatch.context() as patch, torch.no_grad():
        patch.setattr(torch, "empty_strided", find_none)
        with pytest.raises(IngotError) as refused:
            artifact(inputs)
    (problem,) = refused.value.problems
    assert problem.code == "no-device-memory" and problem.fix
    told = "the GPU is full: Tried to allocate 2.00 TiB. GPU 0 has 1.00 GiB free"
    assert problem.message == told
    assert artifact(inputs)["total"].shape == (3,)


def test_a_driver_that_is_too_old_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        @staticmethod
        def cuDriverGetVersion(into: object) -> int:
            into._obj.value = 11040  # type: ignore[attr-defined]
            return 0

    monkeypatch.setattr(devices, "open_driver", Driver)
    monkeypatch.setattr(devices, "CUDA", "12.8")
    assert devices.tell_no_gpu() == (
        "NVIDIA's driver is too old: it runs CUDA 11.4, torch needs 12.8"
    )


# with NVRTC


def test_nvrtc_writes_it_without_a_gpu(tmp_path: Path, capsys: Captured) -> None:
    try:
        nvrtc.open_nvrtc()
    except IngotError as error:
        pytest.skip(str(error))
    file = written(ELASTIC, tmp_path)
    words = ["compile", str(file), "--model", "elastic", "--output-dir", str(tmp_path / "out")]
    asked = ["--device", "cpu", "cuda", "--cuda-arch", "75", "90", "--json"]
    assert status([*words, *asked]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [Path(p).name for p in report["packages"]] == ["cpu", "cuda"]
    folder = tmp_path / "out" / "elastic" / "cuda"
    meta, _ = metadata_of(folder, "cuda")
    assert meta.kernel is not None
    for target, name in meta.kernel.libraries.items():
        content = (folder / name).read_bytes()
        begins = b"\x7fELF" if target.startswith("sm_") else b"//"
        assert content.startswith(begins) and f"{meta.kernel.prefix}_forward".encode() in content
    assert status([*words, "--device", "cuda", "--cuda-arch", "60"]) == 1
    told = capsys.readouterr().err
    assert "compiles no kernel for sm_60" in told and "it compiles for: 7" in told
    assert status([*words, "--device", "cuda", "--cuda-arch", "31"]) == 1
    assert "compiles no kernel for sm_31" in capsys.readouterr().err
    with pytest.raises(IngotError, match="compiles no kernel for sm_31"):
        nvrtc.compile_cubin("", "sm_31", folder=tmp_path)
