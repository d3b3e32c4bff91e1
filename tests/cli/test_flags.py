"""The flags of compiling are the fields of the target."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from cyclopts import CycloptsError

from ingot import IngotError
from ingot.cli.flags import Flags, part_overrides, target_of
from ingot.cli.main import app, status
from ingot.package.target import Target

OF_COMPILE = {"output_dir", "jobs", "stub", "baseline"}
"""Fields that say where and how a package is written, not what its model is."""


def test_every_field_of_the_target_is_a_flag() -> None:
    assert {f.name for f in fields(Target)} - OF_COMPILE == {f.name for f in fields(Flags)}


def test_defaults_are_those_of_the_target() -> None:
    assert target_of(Flags()) == Target()
    assert target_of(Flags(dtype="float32"), jobs=5) == Target(dtype="float32", jobs=5)


def parsed(*words: str) -> tuple[Flags, tuple[str, ...]]:
    """The flags and overrides that `ingot compile` gets from a command line."""
    _, bound, _ = app.parse_args(["compile", "m.i", "--model", "m", *words], exit_on_error=False)
    return part_overrides(
        bound.arguments.get("flags", Flags()), bound.arguments.get("overrides", ())
    )


def test_several_words_follow_one_flag_or_each_its_own() -> None:
    assert (
        parsed("-p", "E", "nu")[0]
        == parsed("-p", "E", "-p", "nu")[0]
        == Flags(parameter=("E", "nu"))
    )
    both = Flags(derivative=("a:b", "c:d"), parameter=("E",), backend=("kernel", "inductor"))
    line = ("-d", "a:b", "c:d", "--backend", "kernel", "inductor", "-p", "E")
    assert parsed(*line)[0] == both
    renames = (
        "--rename-input",
        "a:b",
        "c:d",
        "--rename-output",
        "e:f",
        "--rename-parameter",
        "g:h",
        "i:j",
    )
    found, _ = parsed(*renames)
    assert (found.rename_input, found.rename_parameter) == (("a:b", "c:d"), ("g:h", "i:j"))
    several = target_of(parsed("--device", "cpu", "cuda", "--cuda-arch", "75", "90")[0])
    assert (several.device, several.cuda_arch) == (("cpu", "cuda"), (75, 90))


def test_architectures_are_read_as_others_write_them() -> None:
    words = ("75", "8.0", "sm_86", "compute_90", "10.0", "sm120")
    found = target_of(parsed("--device", "cuda", "--cuda-arch", *words)[0])
    assert found.cuda_arch == (75, 80, 86, 90, 100, 120)
    assert Target(device=("cuda",), cuda_arch=9.0).cuda_arch == (90,)  # type: ignore[arg-type]
    for wrong in ("hopper", "9.", "9.0.1", "sm_", ".9", "-9", "9,0"):
        with pytest.raises(IngotError, match="is no architecture of a GPU"):
            target_of(parsed("--device", "cuda", f"--cuda-arch={wrong}")[0])


def test_overrides_behind_a_flag_stay_overrides() -> None:
    line = ("Models/a/E:=1", "-p", "E", "nu", "Models/b/E=2", "-d", "a:b", "x:=3")
    assert parsed(*line) == (
        Flags(parameter=("E", "nu"), derivative=("a:b",)),
        ("Models/a/E:=1", "Models/b/E=2", "x:=3"),
    )


@pytest.mark.parametrize(
    ("words", "choices", "meant"),
    [
        ("compile m.i --model m --dtype float16", "float64, float32", "float32"),
        ("compile m.i --model m --dtype double", "float64, float32", "float64"),
        ("compile m.i --model m --backend kernle", "kernel, inductor", "kernel"),
        ("compile m.i --model m --device gpu", "cpu, cuda", "cuda"),
        ("compile m.i --model m --inline al", "all, auto, none", "all"),
        ("compile m.i --model m --umat-host abacus", "abaqus, calculix", "abaqus"),
        ("run m.i --backend interpet", "interpret, kernel, inductor", "interpret"),
        ("completion fsh", "bash, zsh, fish", "fish"),
    ],
)
def test_a_word_that_is_no_choice_is_told_with_the_nearest(
    words: str, choices: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(words.split()) == 2
    *_, flag, wrong = words.split()
    flag = "SHELL" if flag == "completion" else flag
    told = f"'{flag}' is one of {choices}, not '{wrong}'"
    said = capsys.readouterr().err
    assert said == f"error[wrong-usage]: {told}\n  fix: did you mean '{meant}'?\n"


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ({"dtype": "float16"}, "did you mean 'float32'?"),
        ({"backend": "kernle"}, "did you mean 'kernel'?"),
        ({"backend": ("kernel", "zzz")}, "give one of: kernel, inductor"),
        ({"device": ("gpu",)}, "did you mean 'cuda'?"),
        ({"inline": "al"}, "did you mean 'all'?"),
        ({"umat": True, "umat_host": "calculx"}, "did you mean 'calculix'?"),
    ],
    ids=str,
)  # fmt: skip
def test_a_target_takes_no_other_words_than_its_flags(wrong: dict[str, Any], fix: str) -> None:
    with pytest.raises(IngotError) as refused:
        Target(**wrong)
    (problem,) = refused.value.problems
    assert (problem.code, problem.fix) == ("wrong-value", fix)


def test_a_target_takes_a_folder_by_its_name() -> None:
    assert Target(output_dir="a/b") == Target(output_dir=Path("a/b"))  # type: ignore[arg-type]
    with pytest.raises(IngotError, match="names no folder"):
        Target(output_dir=3)  # type: ignore[arg-type]


def test_device_that_cannot_be_compiled_for_is_wrong_usage() -> None:
    for words in (("--device", "mps"), ("--device", "cpu", "mps")):
        with pytest.raises(CycloptsError, match='"mps" for --device'):
            parsed(*words)
