"""Packages that do not fit are refused at load, and the text says what to do."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

import ingot
from ingot import IngotError
from ingot.codegen import compiler
from ingot.errors import Problem
from ingot.package.metadata import Metadata
from ingot.package.seal import seal
from ingot.runtime import load
from ingot.types import SR2
from tests import packages
from tests.packages import inputs_of

FILES = ("elastic.cpp", "elastic.h")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the elastic package, to be damaged."""
    place = tmp_path / "elastic"
    shutil.copytree(packages.elastic().folder, place / "cpu")
    return place / "cpu"


def told(place: Path, **options: Any) -> str:
    """What a refused load says."""
    with pytest.raises(IngotError) as refused:
        load(place, **options)
    return str(refused.value)


def edited(folder: Path, **changes: Any) -> None:
    """Change the metadata, and seal it again."""
    file = folder / "elastic_meta.json"
    text = msgspec.json.encode({**msgspec.json.decode(file.read_bytes()), **changes})
    file.write_bytes(seal(text) or text)


def test_copied_package_loads_from_its_folder_and_the_one_above(folder: Path) -> None:
    inputs = inputs_of(packages.elastic(), 5)
    wanted = packages.elastic().artifact()(inputs)["stress"]
    for place in (folder, folder.parent, str(folder)):
        assert torch.equal(load(place)(inputs)["stress"], wanted)


def test_a_package_is_found_by_its_name_in_the_folder_of_all(folder: Path) -> None:
    for place in (folder, folder.parent, folder.parents[1]):
        assert load(place, name="elastic").input_spec["strain"].kind is SR2
        assert "did you mean 'elastic'" in told(place, name="elastc")
        assert "one of: elastic" in told(place, name="zzz")
    assert "no package in" in told(folder.parents[2] / "nothing", name="elastic")


def test_metadata_of_before_says_what_it_said() -> None:
    """Code carries a digest of the metadata, so what was added later is not written unless used."""
    raw = msgspec.json.decode(msgspec.json.encode(packages.elastic().package.metadata))
    (parameter,) = raw["parameters"]
    assert parameter.pop("spellings") == ["nu", "elastic.nu"]
    assert "laws" not in raw["origin"]
    again = msgspec.json.decode(msgspec.json.encode(raw), type=Metadata)
    assert msgspec.json.decode(msgspec.json.encode(again)) == raw


def test_a_live_model_is_loaded_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "model.i"
    file.write_text(packages.ELASTIC)
    inputs = inputs_of(packages.elastic(), 5)
    model = load(file, name="elastic")
    assert isinstance(model, ingot.Model)
    found = model(inputs)["stress"]
    torch.testing.assert_close(found, packages.elastic().artifact()(inputs)["stress"])
    assert load(file, name="elastic", dtype=torch.float32).dtype == torch.float32
    assert "[Models] has no block 'elastik'\n  fix: did you mean 'elastic'?" in told(
        file, name="elastik"
    )
    assert "choose one of: elastic" in told(file, name="zzz")
    assert "give name=, one of: elastic" in told(file)
    assert "ingot.compile(ingot.load(file, name='elastic'), backend='kernel')" in told(
        file, name="elastic", backend="kernel"
    )


def test_extents_of_a_files_settings_are_those_of_its_live_model(tmp_path: Path) -> None:
    file = tmp_path / "cells.i"
    shape = "[Settings]\n  [example_batch_shape]\n    c = '(2; 5)'\n  []\n[]\n"
    file.write_text(shape + packages.DIFFUSION)
    model = load(file, name="diffusion")
    assert model.input_spec["c~1"].axes == (5,) and model.input_spec["t"].axes == ()
    inputs = inputs_of(packages.diffusion(), 2)
    torch.testing.assert_close(model(inputs)["c"], packages.diffusion().artifact()(inputs)["c"])
    assert isinstance(model, ingot.Model)
    assert ingot.compile(model).input_spec == model.input_spec


def test_package_loads_from_the_working_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert load(".").metadata.name == "elastic"


def test_other_schema_is_refused_with_the_command(folder: Path) -> None:
    edited(folder, schema_version=99)
    assert told(folder) == (
        "error[wrong-schema]: elastic_meta.json has schema version 99, this Ingot reads 4\n"
        "  fix: compile it again: ingot compile model.i --model elastic"
    )


def test_other_device_is_refused_with_the_flag(folder: Path) -> None:
    assert told(folder.parent, device="cuda") == (
        f"error[wrong-device]: {folder.parent} holds a package for cpu, not for 'cuda'\n"
        "  fix: compile it for both: ingot compile FILE --device cpu cuda; "
        "or load it with device='cpu' (--device cpu)"
    )
    assert told(folder, device="cuda") == (
        "error[wrong-device]: the package runs on cpu, not on cuda\n"
        "  fix: compile it for both: ingot compile FILE --device cpu cuda; "
        "or load it with device='cpu' (--device cpu)"
    )


def test_other_precision_is_refused_with_the_flag(folder: Path) -> None:
    assert told(folder, dtype=torch.float32) == (
        "error[wrong-dtype]: the package computes in float64, not in float32\n"
        "  fix: compile with --dtype float32"
    )
    assert load(folder, dtype=torch.float64).dtype == torch.float64


def test_each_changed_file_is_named(folder: Path) -> None:
    names = sorted(p.name for p in folder.iterdir() if p.suffix != ".json")
    assert set(FILES) < set(names) and any(n.endswith(".so") for n in names)
    for name in names:
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert told(folder) == (
            f"error[broken-package]: '{name}' was changed after it was compiled\n"
            "  fix: compile it again: ingot compile model.i --model elastic"
        )
        (folder / name).write_bytes(whole)
    load(folder)


def test_each_missing_file_is_named(folder: Path) -> None:
    for path in [p for p in folder.iterdir() if p.suffix != ".json"]:
        aside = path.rename(folder.parent / path.name)
        assert f"'{path.name}' is missing from {folder}\n  fix: compile it again" in told(folder)
        aside.rename(path)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_truncated_metadata_is_refused(folder: Path, part: float) -> None:
    file = folder / "elastic_meta.json"
    text = file.read_bytes()
    file.write_bytes(text[: int(part * len(text))])
    assert told(folder).startswith("error[broken-package]: elastic_meta.json is no JSON")


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"format": "other"}', b"\xff\xfe"])
def test_foreign_metadata_is_refused(folder: Path, text: bytes) -> None:
    (folder / "elastic_meta.json").write_bytes(text)
    assert told(folder).startswith("error[broken-package]: elastic_meta.json")


@pytest.mark.parametrize("change", [{"inputs": 3}, {"kernel": {}}, {"digests": None}])
def test_metadata_of_another_layout_is_refused(folder: Path, change: dict[str, Any]) -> None:
    edited(folder, **change)
    assert told(folder).startswith("error[broken-package]: elastic_meta.json: Expected") or (
        "Object missing required field" in told(folder)
    )


def test_folder_without_a_package_is_told(tmp_path: Path) -> None:
    assert told(tmp_path / "no") == (
        f"error[file-not-found]: no package in '{tmp_path / 'no'}'\n"
        "  fix: compile one: ingot compile FILE"
    )


def test_machine_below_every_level_without_compiler_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise IngotError([Problem("no-compiler", "no C++ compiler is on the path")])

    monkeypatch.setattr(
        sys.modules["ingot.runtime.loader"], "find_supported_levels", lambda: ("x86-64-v2",)
    )
    monkeypatch.setattr(compiler, "find_compiler", none)
    text = told(folder)
    assert "error[wrong-level]: the package holds x86-64-v" in text
    assert "this machine runs x86-64-v2, and there is no compiler" in text
    assert "fix: install g++, or compile the package on a machine like this one" in text


def test_machine_below_every_level_rebuilds_from_source(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        sys.modules["ingot.runtime.loader"], "find_supported_levels", lambda: ("x86-64-v2",)
    )
    with caplog.at_level(logging.WARNING, "ingot"):
        artifact = load(folder)
    assert "elastic: rebuilding for x86-64-v2, the package holds" in caplog.text
    inputs = inputs_of(packages.elastic(), 5)
    wanted = packages.elastic().artifact()(inputs)["stress"]
    torch.testing.assert_close(artifact(inputs)["stress"], wanted, rtol=1e-12, atol=1e-9)


def test_machine_above_the_levels_falls_back_to_the_baseline_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    have = ("x86-64-v9", "x86-64-v3", "x86-64-v2")
    monkeypatch.setattr(sys.modules["ingot.runtime.loader"], "find_supported_levels", lambda: have)
    with caplog.at_level(logging.WARNING, "ingot"):
        artifact = load(folder)
    assert "elastic: running at x86-64-v3, this machine has x86-64-v9" in caplog.text
    inputs = inputs_of(packages.elastic(), 5)
    wanted = packages.elastic().artifact()(inputs)["stress"]
    torch.testing.assert_close(artifact(inputs)["stress"], wanted, rtol=1e-12, atol=1e-9)


def test_package_loads_where_the_catalogue_is_gone(tmp_path: Path) -> None:
    tree = tmp_path / "site" / "ingot"
    ignored = shutil.ignore_patterns("__pycache__", "catalog")
    shutil.copytree(Path(ingot.__file__).parent, tree, ignore=ignored)
    folder = packages.plastic().folder
    code = f"""
import sys, ingot.runtime, torch
assert ingot.__file__.startswith({str(tree)!r}), ingot.__file__
artifact = ingot.runtime.load({str(folder)!r})
shapes = {{n: (2, *v.base) for n, v in artifact.inputs.items()}}
inputs = {{n: torch.full(s, 0.001, dtype=torch.float64) for n, s in shapes.items()}}
inputs["t~1"] *= 0
print(float(artifact(inputs)["flow_rate"].sum()))
foreign = ("nmhit", "cyclopts", "scipy", "pytest", "ingot.program")
print(*(m for m in foreign if m in sys.modules))
assert not sys.modules["ingot.codegen.nvrtc"].open_nvrtc.cache_info().misses
print(*(m for m in sys.modules if m.startswith("ingot.cat")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tree.parent)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    number, foreign, own = done.stdout.splitlines()
    assert torch.isfinite(torch.tensor(float(number)))
    assert foreign == "" and own == ""


def test_truncated_graph_is_refused(folder: Path) -> None:
    for graph in folder.glob("*.pt2"):
        whole = graph.read_bytes()
        graph.write_bytes(whole[: len(whole) // 2])
        for backend in ("kernel", "inductor"):
            assert f"'{graph.name}' was changed after it was compiled" in told(
                folder, backend=backend
            )
        graph.write_bytes(whole)
    assert load(folder, backend="inductor").metadata.name == "elastic"


def test_graphs_of_another_torch_are_refused_and_the_kernel_is_not(folder: Path) -> None:
    edited(folder, torch_version="2.9.1")
    now = torch.__version__.split("+")[0]
    assert told(folder, backend="inductor") == (
        f"error[wrong-torch]: the package was compiled by torch 2.9.1, this is {now}\n"
        "  fix: compile it again: ingot compile model.i --model elastic"
    )
    assert load(folder).metadata.name == "elastic"


def test_backend_that_the_package_does_not_hold_names_the_flag() -> None:
    assert told(packages.plastic().folder, backend="inductor") == (
        "error[wrong-backend]: the package holds no inductor backend\n"
        "  fix: compile with --backend inductor"
    )


def test_schema_of_an_unknown_origin_is_refused(folder: Path) -> None:
    edited(folder, schema_version=99, origin="somewhere")
    assert "fix: compile the package again" in told(folder)


def test_words_that_name_nothing_are_told_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "live.i"
    file.write_text(packages.ELASTIC)
    for place in (packages.elastic().folder, file):
        for wrong, told in (
            ({"dtype": torch.float16}, "not 'float16'\n  fix: did you mean 'float32'?"),
            ({"device": "gpu"}, "'gpu' is no device"),
        ):
            with pytest.raises(IngotError) as refused:
                ingot.load(place, name="elastic", **wrong)
            assert told in str(refused.value)
            assert "did you mean" in str(refused.value)
    with pytest.raises(IngotError, match="not 'kernle'\n  fix: did you mean 'kernel'"):
        ingot.load(packages.elastic().folder, backend="kernle")  # type: ignore[arg-type]
