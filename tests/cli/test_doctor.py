"""`ingot doctor` tells what is here, and what is missing with its cost; never a traceback."""

import json
import random
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from ingot.cli import doctor
from ingot.cli.main import status
from ingot.codegen import compiler
from ingot.codegen.cache import Cache
from ingot.errors import IngotError, Problem
from ingot.extras import EXTRAS, PURPOSES


def test_what_is_needed_is_here_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    checks = {check["part"]: check for check in told["checks"]}
    assert told["ready"]
    assert {"ingot", "python", "compiler", "GPU", "NVRTC", "cache"} <= set(checks)
    for check in told["checks"]:
        assert check["ok"] or (check["cost"] and check["fix"])


def test_a_missing_compiler_is_told_with_its_cost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> str:
        raise IngotError([Problem("no-compiler", "no C++ compiler is on the path", None, "")])

    monkeypatch.setattr(compiler, "find_compiler", none)
    assert status(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "MISSING compiler" in told
    assert "--backend interpret" in told and "install g++" in told


def test_a_cache_that_cannot_be_written_costs_time_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("ingot.codegen.cache.open_cache", lambda: Cache(tmp_path / "file" / "in"))
    check = doctor._check_cache()
    assert not check.ok and not check.needed
    assert "compiled again" in check.cost


def test_a_version_out_of_its_range_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_read_version", lambda name: {"torch": "2.16.0"}.get(name))
    old, absent = (doctor._check_package(name, ">=2.11,<2.16") for name in ("torch", "none"))
    assert not old.ok and "2.16.0" in old.found
    assert not absent.ok and absent.fix == "pip install 'none>=2.11,<2.16'"


def test_drawn_versions_lie_where_pip_says() -> None:
    draw = random.Random(0)
    for _ in range(500):
        version = ".".join(str(draw.randrange(4)) for _ in range(draw.randrange(1, 4)))
        bounds = ",".join(
            draw.choice((">=", "<", "<=", ">", "=="))
            + ".".join(str(draw.randrange(4)) for _ in range(draw.randrange(1, 4)))
            for _ in range(draw.randrange(1, 3))
        )
        assert doctor._lies_within(version, bounds) == SpecifierSet(bounds).contains(version)
    assert doctor._lies_within("2.13.0+cpu", ">=2.11,<2.16")


def test_every_extra_has_a_purpose() -> None:
    required = {extra for _, _, extra in doctor._read_requirements() if extra}
    assert required <= set(PURPOSES)
    assert set(EXTRAS.values()) <= set(PURPOSES)
