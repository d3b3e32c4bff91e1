"""A package as a part of a composition: as the model that it was compiled from."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot import IngotError
from ingot.cli.main import status
from ingot.execute import executor
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Program, compile_passes, prepared, with_adjoint, with_jacobian
from tests.packages import DECAY, DIFFUSION, Made, decay, diffusion, plastic, single, written
from tests.systems import plasticity

SOURCE = DECAY[DECAY.index("[Models]") :]
AROUND = """
[Models]
  [before]
    type = ScalarLinearCombination
    from = 'u v'
    weights = '900 100'
    to = 'T'
  []
  [after]
    type = ScalarMultiplication
    from = 'total alpha'
    to = 'product'
  []
  [whole]
    type = ComposedModel
    models = 'after before decay'
    additional_outputs = 'alpha total'
  []
  [miss]
    type = ScalarLinearCombination
    from = 'product goal'
    weights = '1 -1'
    to = 'u_residual'
  []
  [equations]
    type = ComposedModel
    models = 'miss whole'
  []
  [fit]
    type = ImplicitUpdate
    equation_system = 'fitting'
    solver = 'newton'
  []
  [use]
    type = ScalarMultiplication
    from = 'u u'
    to = 'square'
  []
  [fitted]
    type = ComposedModel
    models = 'fit use'
    additional_outputs = 'u'
  []
[]
[EquationSystems]
  [fitting]
    type = NonlinearSystem
    model = 'equations'
    unknowns = 'u'
  []
[]
"""
NEWTON = "[Solvers]\n[newton]\ntype = Newton\n[]\n[]\n"


def package(one: Made, name: str = "decay") -> str:
    """A block that stands for a compiled model."""
    return f"[Models]\n[{name}]\ntype = AOTIModel\nartifact_path = '{one.folder.parent}'\n[]\n[]\n"


def programs(source: str, packaged: str, model: str, **shapes: tuple[int, ...]) -> list[Program]:
    """A model composed of source, and the same with a package in the place of some."""
    return [prepared(build(read_text(text), model), shapes) for text in (packaged, source)]


def draw(program: Program, seed: int, batch: tuple[int, ...]) -> dict[str, Tensor]:
    """Inputs at which the reaction goes on."""
    g = torch.Generator().manual_seed(seed)
    found = {}
    for v in program.inputs:
        sizes = [program.extent(a) for a in v.axes]
        shape = (*batch, *sizes, *v.kind.base)
        found[v.name] = 0.05 + 0.1 * torch.rand(shape, generator=g, dtype=torch.float64)
    later = {"t": 1.0, "u": 1.0, "v": 0.3}
    return {n: x + later.get(n, 0.0) for n, x in found.items()}


def assert_alike(made: Program, source: Program, inputs: dict[str, Tensor]) -> None:
    """Values, forward derivatives by all inputs, and adjoints agree."""
    outs, ins = [[v.name for v in vs] for vs in (source.outputs, source.inputs)]
    assert [v.name for v in made.outputs] == outs
    pairs = [(y, x) for y in outs for x in ins]
    ours, theirs = (Interpreter(with_jacobian(p, pairs))(inputs)[0] for p in (made, source))
    for name, x in theirs.items():
        assert torch.isfinite(x).all()
        torch.testing.assert_close(ours[name], x, rtol=1e-9, atol=1e-9)
    bars = {f"a.{y}": torch.rand_like(theirs[y]) for y in outs}
    found = [Interpreter(with_adjoint(p, outs, ins))({**inputs, **bars})[0] for p in (made, source)]
    for x in ins:
        torch.testing.assert_close(found[0][f"a.{x}"], found[1][f"a.{x}"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_a_package_in_a_composition_is_the_model_it_was_compiled_from(
    seed: int, batch: tuple[int, ...]
) -> None:
    made, source = programs(SOURCE + AROUND, package(decay()) + AROUND + NEWTON, "whole")
    assert_alike(made, source, draw(source, seed, batch))


@pytest.mark.parametrize("seed", range(3))
def test_a_package_inside_a_residual_is_solved_with_its_compiled_derivatives(seed: int) -> None:
    made, source = programs(SOURCE + AROUND, package(decay()) + AROUND + NEWTON, "fitted")
    inputs = draw(source, seed, (4,))
    at = {**inputs, "u": inputs["u"] + 0.05}
    whole = Interpreter(prepared(build(read_text(SOURCE + AROUND), "whole")))
    inputs["goal"] = whole(at)[0]["product"]
    assert_alike(made, source, inputs)
    torch.testing.assert_close(Interpreter(made)(inputs)[0]["u"], at["u"], rtol=1e-7, atol=0.0)


def test_a_package_of_tensors_and_one_on_axes_are_the_models_they_were_compiled_from() -> None:
    """SR2 values, and cells: own axes of the package, and of a file around a package of none."""
    stress = """
[Models]
  [stretch]
    type = SR2LinearCombination
    from = 'A B'
    weights = '1 0.5'
    to = 'E'
  []
  [whole]
    type = ComposedModel
    models = 'stretch update'
  []
[]
"""
    text = plasticity("FBComplementarity", isotropic=True, kinematic=False)
    made, source = programs(text + stress, package(plastic(), "update") + stress, "whole")
    g = torch.Generator().manual_seed(1)
    inputs = {
        v.name: 1e-3 * torch.rand((3, *v.kind.base), generator=g, dtype=torch.float64)
        for v in source.inputs
    }
    assert_alike(made, source, {**inputs, "t": torch.ones(3).double()})
    cells = """
[Models]
  [source]
    type = ScalarMultiplication
    from = 'a b'
    to = 'c~1'
  []
  [squared]
    type = ScalarMultiplication
    from = 'c c b'
    to = 'd'
  []
  [whole]
    type = ComposedModel
    models = 'source diffusion squared'
    additional_outputs = 'c'
  []
[]
"""
    made, source = programs(
        DIFFUSION + cells, package(diffusion(), "diffusion") + cells, "whole", a=(5,), c=(5,)
    )
    assert_alike(made, source, draw(source, 0, (2,)))
    made, source = programs(
        SOURCE + AROUND, package(decay()) + AROUND + NEWTON, "whole", u=(4,), alpha=(4,)
    )
    assert_alike(made, source, draw(source, 0, (2,)))


def test_a_package_is_called_between_kernels_and_no_pass_holds_it() -> None:
    (made, _) = programs(SOURCE + AROUND, package(decay()) + AROUND + NEWTON, "whole")
    outs, ins = [[v.name for v in vs] for vs in (made.outputs, made.inputs)]
    sloped = with_jacobian(made, [(y, x) for y in outs for x in ins])
    inputs = draw(made, 0, (4,))
    expected, (told,) = Interpreter(sloped)(inputs)
    found, (status,) = executor(sloped, "kernel")(inputs)
    assert status.solve == told.solve == "decay.update"
    for name, x in expected.items():
        torch.testing.assert_close(found[name], x, rtol=1e-10, atol=1e-10)
    with pytest.raises(IngotError, match="put its source model in its place") as raised:
        compile_passes(made)
    (problem,) = raised.value.problems
    assert problem.code == "opaque-model"
    assert problem.span is not None
    assert problem.span.block == "Models/decay"
    assert "opaque [decay](" in str(made)


def test_a_derivative_that_a_package_lacks_is_refused_with_the_flag_that_adds_it() -> None:
    text = package(single()) + AROUND + NEWTON
    program = prepared(build(read_text(text), "whole"))
    inputs = draw(program, 0, (3,))
    values = Interpreter(program)(inputs)[0]
    source = Interpreter(prepared(build(read_text(SOURCE + AROUND), "whole")))(inputs)[0]
    torch.testing.assert_close(values["product"], source["product"], rtol=1e-4, atol=1e-4)
    with pytest.raises(IngotError, match="compile it with -d alpha:T") as raised:
        Interpreter(with_jacobian(program, [("product", "u")]))(inputs)
    assert raised.value.problems[0].code == "no-derivatives"
    with pytest.raises(IngotError, match="compile it with -d total:T"):
        bars = {"a.total": torch.ones(3).double()}
        Interpreter(with_adjoint(program, ["total"], ["u"]))({**inputs, **bars})
    with pytest.raises(IngotError, match="compile it with -d"):
        Interpreter(prepared(build(read_text(text), "fitted")))({**inputs, "goal": inputs["t"]})


DRIVEN = (
    DECAY[: DECAY.index("[Models]")]
    .replace("model = 'decay'", "model = 'whole'")
    .replace("'T extra'", "'u v extra'")
    .replace("'heat times'", "'heat times times'")
)


def test_a_composition_with_a_package_runs_by_default_and_is_not_compiled_into_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    around = AROUND.replace("900 100", "1 10")
    file = written(DRIVEN + package(decay()) + around + NEWTON, tmp_path)
    assert status(["run", str(file), "--json", "--save", str(tmp_path / "ours.pt")]) == 0
    assert json.loads(capsys.readouterr().out)["backend"] == "kernel"
    source = written(DRIVEN + SOURCE + around, tmp_path / "source")
    assert status(["run", str(source), "--save", str(tmp_path / "source.pt")]) == 0
    ours, theirs = (torch.load(tmp_path / f"{n}.pt") for n in ("ours", "source"))
    assert ours.keys() == theirs.keys()
    for name, x in theirs.items():
        torch.testing.assert_close(ours[name], x, rtol=1e-9, atol=1e-9)
    capsys.readouterr()
    assert status(["compile", str(file), "--model", "whole"]) == 1
    said = capsys.readouterr().err
    assert "error[opaque-model]: [decay] is a compiled package" in said
    assert "put its source model in its place" in said


def test_a_package_that_fails_inside_a_composition_is_told_as_its_source_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At times and temperatures where the reaction runs away."""
    monkeypatch.chdir(tmp_path)
    driven = DRIVEN.replace("'heat times times'", "'times times times'")
    source = prepared(build(read_text(SOURCE + AROUND), "whole"))
    made = prepared(build(read_text(package(decay()) + AROUND + NEWTON), "whole"))
    inputs = {**draw(source, 0, (6,)), "u": torch.linspace(1.0, 9.0, 6).double()}
    (theirs,), (ours,) = (Interpreter(p)(inputs)[1] for p in (source, made))
    assert ours.solve == "decay.update"
    assert ours.reason.tolist() == theirs.reason.tolist()
    assert 0 < theirs.converged.sum() < 6
    (none,) = Interpreter(made)({n: x[:0] for n, x in inputs.items()})[1]
    assert (none.solve, len(none.reason)) == ("decay.update", 0)
    shutil.copytree(decay().folder.parent, tmp_path / "parts" / "decay")
    text = package(decay()).replace(str(decay().folder.parent), "decay")
    file = written(driven + text + AROUND + NEWTON, tmp_path / "parts")
    for again in (file, Path("failed/decay.update.i")):
        assert status(["run", str(again)]) == 1
        assert "error[not-converged]: 'decay.update': 1 of 1 points" in capsys.readouterr().err
