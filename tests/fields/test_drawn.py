"""Random phase fields: compiled or not, whole or in two parts, a run is the same run."""

import warnings
from pathlib import Path

import pytest
import torch

from ingot.errors import IngotWarning
from ingot.fields import Run, build, prepared
from ingot.fields.checkpoint import restore, store
from ingot.hit import read
from tests.fields.drawn_inputs import SOLVERS, Drawn, draw


def ready(case: Drawn, folder: Path, *, jit: bool) -> Run:
    """A run that writes into a folder of its own."""
    folder.mkdir(exist_ok=True)
    file = folder / "case.i"
    file.write_text(case.text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IngotWarning)
        return prepared(build(read(file, moose=True)), folder, jit=jit)


def finish(run: Run) -> Run:
    """The run at its end; what is told of its numbers does not matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IngotWarning)
        list(run.steps())
    return run


def compare_compiled(seed: int, folder: Path, *, solvers: tuple[str, ...] = SOLVERS) -> None:
    case = draw(seed, solvers=solvers)
    direct = finish(ready(case, folder / "direct", jit=False))
    compiled = finish(ready(case, folder / "compiled", jit=True))
    assert compiled.times == direct.times
    near = 2e-4 if case.single else 1e-9
    for name in ("c", "w", "rate", "both"):
        found, expected = (each.state.buffers[name] for each in (compiled, direct))
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected, rtol=near, atol=near, msg=f"{name}\n{case}")
    for name in ("mean", "high", "change", "total"):
        pairs = zip(compiled.rows, direct.rows, strict=True)
        assert all(a[name] == pytest.approx(b[name], rel=near, abs=near) for a, b in pairs), case


@pytest.mark.parametrize("solver", ["AdamsBashforthMoultonCoupled", "RealSpaceForwardEuler"])
def test_a_compiled_run_is_the_direct_one(solver: str, tmp_path: Path) -> None:
    compare_compiled(7, tmp_path, solvers=(solver,))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_every_compiled_run_is_the_direct_one(seed: int, tmp_path: Path) -> None:
    compare_compiled(seed, tmp_path)


def compare_restored(seed: int, folder: Path, *, jit: bool) -> None:
    """Two steps, a checkpoint, and the rest in another run are one run, bit for bit."""
    case = draw(seed)
    whole = finish(ready(case, folder / "whole", jit=jit))
    for now in ready(case, folder / "parts", jit=jit).steps():
        if now.number == 2:
            store(now, folder / "half.checkpoint")
            break
    rest = ready(case, folder / "parts", jit=jit)
    restore(rest, folder / "half.checkpoint")
    finish(rest)
    assert (rest.times, rest.number) == (whole.times, whole.number)
    assert repr(rest.rows) == repr(whole.rows), case  # NaN is not itself
    for name, value in whole.state.buffers.items():
        assert torch.equal(value.nan_to_num(), rest.state.buffers[name].nan_to_num()), (name, case)
    for file in (folder / "whole").iterdir():
        if file.suffix in (".csv", ".xmf"):
            assert file.read_bytes() == (folder / "parts" / file.name).read_bytes(), file.name


@pytest.mark.parametrize("seed", range(12))
def test_a_stored_run_goes_on_bit_for_bit(seed: int, tmp_path: Path) -> None:
    compare_restored(seed, tmp_path, jit=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2000, 2040))
@pytest.mark.parametrize("jit", [False, True], ids=["direct", "jit"])
def test_every_stored_run_goes_on_bit_for_bit(seed: int, jit: bool, tmp_path: Path) -> None:
    compare_restored(seed, tmp_path, jit=jit)
