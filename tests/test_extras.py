"""Every package that may be absent is installed by an extra that pyproject.toml has."""

import sys
import tomllib
from pathlib import Path

import pytest

from ingot.errors import IngotError
from ingot.extras import EXTRAS, require_extra

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_an_extra_installs_what_it_is_named_for(package: str, extra: str) -> None:
    installed = PROJECT["project"]["optional-dependencies"][extra]
    assert any(each.startswith(package) for each in installed)


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_what_is_absent_is_told_with_its_command(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(IngotError, match=rf"such files need {package}.*\n.*'ingot\[{extra}\]'"):
        require_extra(package, "such files")


def test_what_a_package_lacks_itself_is_not_taken_for_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xarray.py").write_text("import nowhere_at_all")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "xarray", raising=False)
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        require_extra("xarray", "such files")
