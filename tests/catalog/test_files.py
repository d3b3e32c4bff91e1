"""Laws of a user's own files: what joins the catalogue, for how long, and what is told instead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ingot.catalog import CATALOG, law_files, laws_of, load_file
from ingot.errors import IngotError
from ingot.execute import executor
from ingot.hit import read_text
from ingot.model import build
from ingot.program import prepared

LAW = """
from ingot.catalog import Parameter, model
from ingot.types import Scalar

@model(gives="y")
def Scaled(x: Scalar, *, factor: Parameter[Scalar] = 2) -> Scalar:
    return factor * x
"""
FILE = "[Models]\n[m]\ntype = Scaled\n[]\n[]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def value_at_one() -> float:
    """What the law gives at 1."""
    program = prepared(build(read_text(FILE), "m"))
    return float(executor(program, "interpret")({"x": torch.ones((), dtype=torch.float64)})[0]["y"])


def test_laws_of_files_are_known_until_the_end_of_the_block() -> None:
    files = [write("laws.py", LAW), write("more.py", LAW.replace("Scaled", "Other"))]
    path = list(sys.path)
    with laws_of(files):
        assert {"Scaled", "Other"} <= CATALOG.keys()
        assert law_files() == tuple(file.resolve() for file in files)
        assert value_at_one() == 2
    assert not {"Scaled", "Other"} & CATALOG.keys()
    assert law_files() == ()
    assert sys.path == path
    assert not Path("__pycache__").exists()


def test_a_law_that_changes_is_the_new_one_within_the_same_second() -> None:
    file = write("laws.py", LAW)
    stamp = os.stat(file)
    for factor in ("2", "3"):
        write("laws.py", LAW.replace("= 2", f"= {factor}"))
        os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        with laws_of([file]):
            assert value_at_one() == float(factor)


def test_the_same_file_twice_is_one_file() -> None:
    file = write("laws.py", "open('count', 'a').write('1')\n" + LAW)
    with laws_of([file, Path("../") / Path.cwd().name / file, file.resolve()]):
        assert Path("count").read_text() == "1"
        assert load_file(file) == ("Scaled",), "loading it again declares it anew"


def test_a_file_may_also_be_imported(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    file = write("laws_to_import.py", LAW)
    monkeypatch.syspath_prepend(folder)
    with laws_of([file]):
        __import__("laws_to_import")
        assert CATALOG["Scaled"].function.__module__ == "laws_to_import"


def test_files_of_one_stem_are_two_modules_each_with_its_own_neighbours() -> None:
    for at, (place, how) in enumerate([("a", "from helper"), ("b", "from .helper")]):
        write(f"{place}/helper.py", f"FACTOR = {at}")
        text = LAW.replace("Scaled", f"Scaled{at}").replace("factor * x", "FACTOR * x")
        write(f"{place}/laws.py", f"{how} import FACTOR\n" + text)
    write("c/helper.py", "FACTOR = 2")
    write("c/laws.py", f"import helper\n{LAW}".replace("factor * x", "helper.FACTOR * x"))
    with laws_of([f"{place}/laws.py" for place in "abc"]):
        for at, name in enumerate(["Scaled0", "Scaled1", "Scaled"]):
            assert CATALOG[name].function(1.0, factor=5.0) == at
    assert "helper" not in sys.modules


def test_laws_of_a_module_beside_the_file_join_too() -> None:
    write("helper.py", LAW)
    assert "Scaled" not in CATALOG
    with laws_of([write("laws.py", "import helper\n"), write("more.py", "import helper\n")]):
        assert value_at_one() == 2


WRONG = {
    "declares nothing": ("x = 1\n", "no-law", "'laws.py' declares no law"),
    "is empty": ("", "no-law", "declares no law"),
    "is no Python": ("[Models]\n  [m\n", "wrong-python", "laws.py:2"),
    "holds a null byte": ("x = '\0'\n", "wrong-python", "is not Python"),
    "raises": (LAW + "\n\ndef f():\n    return 1 / 0\n\nf()\n", "wrong-python", "laws.py:11 in f"),
    "raises in torch": (
        "import torch\ntorch.zeros(2).reshape(3)\n" + LAW, "wrong-python", "laws.py:2",
    ),
    "lacks a module": ("import nowhere_at_all\n" + LAW, "wrong-python", "No module named"),
    "exits": ("import sys\nsys.exit(3)\n", "wrong-python", "SystemExit: 3"),
    "fails beside": ("from .broken import x\n" + LAW, "wrong-python", "broken.py:1"),
    "names one of ours": (
        LAW.replace("Scaled", "VoceIsotropicHardening"), "wrong-law", "in ingot.catalog.hardening",
    ),
    "names one of ours in a family": (
        'from ingot.catalog import T, model\nfrom ingot.types import Scalar\n'
        '@model.family(VoceIsotropicHardening=Scalar)(gives="y")\ndef Own(x: T) -> T:\n  return x',
        "wrong-law", "in ingot.catalog.hardening",
    ),
    "declares wrongly": (LAW.replace("x: Scalar", "x: float"), "wrong-law", "laws.py:5 in Scaled"),
    "forgets gives": (LAW.replace('(gives="y")', ""), "wrong-law", "not say what the law gives"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_cannot_be_loaded_is_told_at_its_place(case: str) -> None:
    text, code, words = WRONG[case]
    write("broken.py", "1 / 0\n")
    path, before, modules = list(sys.path), dict(CATALOG), set(sys.modules)
    with pytest.raises(IngotError) as raised, laws_of([write("laws.py", text)]):
        pass
    assert [problem.code for problem in raised.value.problems] == [code]
    assert words in str(raised.value), str(raised.value)
    assert raised.value.problems[0].fix
    assert {n: CATALOG[n] for n in before} == before
    assert "Scaled" not in CATALOG
    assert sys.path == path
    assert not {"laws", "broken", "helper"} & (set(sys.modules) - modules)


@pytest.mark.parametrize("name", ["none.py", "none.i", "folder", "folder.py", "model.i"])
def test_what_is_no_python_file_is_told(name: str) -> None:
    Path("folder").mkdir()
    Path("folder.py").mkdir()
    write("model.i", FILE)
    with pytest.raises(IngotError, match=r"there is no file|a folder, not a file|no Python file"):
        load_file(name)


def test_two_files_with_one_law_name_both_places() -> None:
    files = [write("a.py", LAW), write("b.py", LAW)]
    with pytest.raises(IngotError) as raised, laws_of(files):
        pass
    told = str(raised.value)
    assert f"there is already a law 'Scaled', in {files[0].resolve()}:5" in told
    assert f"{files[1].resolve()}:5 in Scaled" in told


def test_a_law_does_not_hide_a_type_that_is_no_law() -> None:
    text = LAW.replace("Scaled", "ComposedModel")
    with laws_of([write("laws.py", text)]), pytest.raises(IngotError) as raised:
        build(read_text("[Models]\n[m]\ntype = ComposedModel\nmodels = 'a'\n[]\n[]\n"), "m")
    assert "already a type 'ComposedModel', in ingot.program.combinators" in str(raised.value)
    assert "laws.py:5" in str(raised.value)


def test_a_law_imported_before_ours_of_its_name_is_told_at_its_place() -> None:
    write("laws.py", LAW.replace("Scaled", "VoceIsotropicHardening"))
    code = "import laws; from ingot.catalog import load; load()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert "already a law 'VoceIsotropicHardening', in ingot.catalog.hardening" in done.stderr
    assert "laws.py:5 in VoceIsotropicHardening" in done.stderr
