"""What tests of fields share: the published cases, one thread, small runs."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingot.errors import Span
from ingot.fields import Result, build, run
from ingot.fields.blocks.device import device_of
from ingot.hit import read_text
from tests.threads import threads

MARLIN = Path(__file__).parents[3] / "shared" / "cases" / "marlin"
INPUTS = Path(__file__).parent / "inputs"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with threads(1):
        yield


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that name no device take place on the CPU, also where there is a GPU."""

    def chosen(
        names: tuple[str, ...], asked: str = "", span: Span | None = None, rank: int | None = None
    ) -> str:
        return device_of(names, asked or ("" if names else "cpu"), span, rank)

    monkeypatch.setattr(sys.modules["ingot.fields.runs"], "device_of", chosen)


@pytest.fixture(scope="session")
def marlin() -> Path:
    """The folder of Marlin's inputs and references; skips where it is not there."""
    if not MARLIN.is_dir():
        pytest.skip("the published cases do not lie beside the checkout (../shared/cases)")
    return MARLIN


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., Result]:
    """Run a text as an input file."""

    def simulated(text: str, *overrides: str) -> Result:
        return run(build(read_text(text, overrides=overrides, moose=True)), tmp_path)

    return simulated
