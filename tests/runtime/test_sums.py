"""Packages of models that sum over points: cut there, called from Python, with adjoints."""

from copy import copy
from functools import cache

import msgspec
import pytest
import torch
from torch import Tensor

import ingot
from ingot import IngotError, IngotWarning
from ingot.graphs.calls import CallCache
from ingot.hit import read_text
from ingot.model import Model, build
from ingot.package.compilation import Compilation
from ingot.package.consistent import find_inconsistencies
from ingot.package.stages import advance
from ingot.package.target import Target
from ingot.program import prepared
from ingot.runtime.artifact import Artifact
from ingot.runtime.stub import AOTIModel
from ingot.types import SR2
from tests.program.declared import declared

TEXT = """
[Models]
  [mix]
    type = SR2LinearCombination
    from = 'A B'
    weights = '2 -1'
    to = 'S'
  []
  [residual]
    type = SR2LinearCombination
    from = 'u S'
    weights = '4 -1'
    to = 'u_residual'
  []
  [solve]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
  [total]
    type = SR2DynamicMean
    from = 'u'
    to = 'T'
    dim = 0
  []
  [apart]
    type = SR2LinearCombination
    from = 'S T'
    weights = '1 -1'
    to = 'D'
  []
  [whole]
    type = ComposedModel
    models = 'mix solve total{more}'
    additional_outputs = 'S u{gives}'
  []
  [torn]
    type = ComposedModel
    models = 'mix solve total law'
  []
  [law]
    type = Opaque
    x = 'T'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'u'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
"""
WEIGHT = "mix.weights_0"


def model_of(name: str = "whole", more: str = " apart", gives: str = " T") -> Model:
    return build(read_text(TEXT.replace("{more}", more).replace("{gives}", gives)), name)


@cache
def summed() -> Artifact:
    return ingot.compile(model_of(), parameter=(WEIGHT,), derivative=("u:A", "S:B"), train=True)


def draw(batch: tuple[int, ...]) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    return {n: torch.rand((*batch, 6), generator=g, dtype=torch.float64) for n in ("A", "B", "u")}


def plain(x: dict[str, Tensor], weight: Tensor) -> dict[str, Tensor]:
    s = weight * x["A"] - x["B"]
    u = s / 4
    return {"S": s, "u": u, "T": u.mean(0), "D": s - u.mean(0)}


def test_a_package_that_sums_over_points_has_the_values_and_gradients_of_torch() -> None:
    artifact = summed()
    (held,) = dict(artifact.named_parameters()).values()
    for batch, single in (((5,), False), ((5,), True), ((1,), False)):
        given = draw(batch)
        if single:
            given["B"] = given["B"][0]
        ours, theirs = ({n: x.clone().requires_grad_() for n, x in given.items()} for _ in "ab")
        weight = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        found, expected = artifact(ours), plain(theirs, weight)
        bars = {n: torch.rand_like(x) for n, x in expected.items()}
        for values in (found, expected):
            sum((values[n] * bars[n]).sum() for n in bars).backward()
        for n, x in expected.items():
            torch.testing.assert_close(found[n], x)
        for n in ("A", "B"):
            torch.testing.assert_close(ours[n].grad, theirs[n].grad)
        torch.testing.assert_close(held.grad, weight.grad)
        held.grad = None
        pulled = artifact.param_vjp(given, bars)
        torch.testing.assert_close(pulled[WEIGHT], weight.grad)
        blocks = artifact.jacobian(given)
        torch.testing.assert_close(
            blocks["u"]["A"], 0.5 * torch.eye(6).double().expand(*batch, 6, 6)
        )
        torch.testing.assert_close(blocks["S"]["B"], -torch.eye(6).double())
        assert [s.solve for s in artifact.status] == ["solve"]


def test_parts_of_the_batch_that_do_not_go_together_are_told_by_name() -> None:
    with pytest.raises(IngotError, match=r"of batch \(3,\), and meets values of batch \(4, 3\)"):
        summed()(draw((4, 3)))
    with pytest.raises(IngotError, match="is given none"):
        summed()(draw((0,)))


def test_a_sum_over_the_last_axis_that_meets_its_points_is_told_as_live() -> None:
    """What is left, (3,), does not even broadcast to (3, 4): the same package with dim = 1."""
    run = summed()._backend._runs["forward"]
    edit = msgspec.structs.replace
    steps = tuple(s if s.rule is None else edit(s, dim=1) for s in run.info.steps)
    levels = {n: edit(level, dim=1) for n, level in run.info.levels.items()}
    other = copy(run)
    other.info, other._batches = edit(run.info, steps=steps, levels=levels), CallCache()
    other._sources = {new: run._sources[s] for s, new in zip(run.info.steps, steps, strict=True)}
    live = build(read_text(TEXT.format(more=" apart", gives=" T").replace("= 0", "= 1")), "whole")
    told = r"mean over points, of batch \(3,\), and meets values of batch \(3, 4\)"
    with pytest.raises(IngotError, match=told) as theirs:
        live(draw((3, 4)))
    with pytest.raises(IngotError, match=told) as ours:
        other({**draw((3, 4)), WEIGHT: torch.tensor(2.0, dtype=torch.float64)})
    assert ours.value.problems[0].message == theirs.value.problems[0].message


def test_a_point_that_fails_spoils_the_sum_and_its_own_gradient() -> None:
    given = draw((4,))
    given["A"][2] = torch.nan
    with pytest.warns(IngotWarning, match="1 of 4 points did not converge"):
        found = summed()(given)
    assert found["T"].isnan().all() and found["u"].isnan().any(-1).tolist() == [0, 0, 1, 0]
    with pytest.warns(IngotWarning):
        pulled = summed().vjp(given, {"u": torch.ones(4, 6, dtype=torch.float64)})["A"]
    assert pulled.isnan().any(-1).tolist() == [False, False, True, False]
    torch.testing.assert_close(pulled[0], torch.full((6,), 0.5).double())


def lowered(model: Model, **options: object) -> Compilation:
    return advance(Compilation(model=model, target=Target(stub=False, **options)))  # pyright: ignore[reportArgumentType]


def test_its_header_says_why_it_declares_nothing() -> None:
    c = lowered(model_of())
    assert c.metadata.kernel is not None
    assert "#error \"'whole' sums over points" in c.sources[c.metadata.kernel.header]
    kinds = [s.kind for s in c.metadata.segments]
    assert kinds == ["implicit", "forward", "reduction", "forward", "forward"]
    assert c.metadata.entries == ("forward_0", "forward_2", "forward_3")


def test_what_no_package_holds_is_refused_at_its_block() -> None:
    with pytest.raises(
        IngotError, match=r"\[total\] is a mean over points, which has no"
    ) as raised:
        lowered(model_of(), derivative=(":",))
    assert raised.value.problems[0].code == "batch-reduction"
    with pytest.raises(IngotError, match=r"a compiled graph runs points apart") as raised:
        lowered(model_of(), backend=("inductor",))
    assert "--backend kernel" in str(raised.value.problems[0].fix)

    def Opaque(x: SR2) -> SR2:
        return torch.sin(x)

    with declared(Opaque, opaque=True), pytest.raises(IngotError, match=r"\[law\] is a") as raised:
        lowered(model_of("torn"))
    assert raised.value.problems[0].code == "opaque-model"


def test_such_a_package_is_no_part_of_a_composition() -> None:
    artifact = summed()
    inputs, outputs = (dict.fromkeys(part, SR2) for part in (artifact.inputs, artifact.outputs))
    body = AOTIModel(artifact, lambda _: artifact)
    part = Model("part", "AOTIModel", None, inputs, outputs, body)
    with pytest.raises(IngotError, match=r"\[part\] is a package that sums over points") as raised:
        prepared(part)
    assert raised.value.problems[0].code == "batch-reduction"


def test_metadata_whose_segments_do_not_agree_is_told() -> None:
    meta = summed().metadata
    assert list(find_inconsistencies(meta)) == []
    change = msgspec.structs.replace
    cut = meta.cuts["forward"]
    first, *rest = cut.steps
    level = next(iter(cut.levels))
    for wrong in (
        change(cut, outputs=cut.outputs[1:]),
        change(cut, steps=tuple(rest)),
        change(cut, steps=(change(first, reads=("nothing",)), *rest)),
        change(cut, steps=(change(first, solves=()), *rest)),
        change(cut, values=cut.values[:-1]),
        change(cut, given={}),
        change(cut, levels={}),
        change(cut, levels={level: change(cut.levels[level], sources=(level,))}),
        change(cut, values=tuple(change(v, base=(2,)) for v in cut.values)),
    ):
        assert list(find_inconsistencies(change(meta, cuts={**meta.cuts, "forward": wrong})))
    assert list(find_inconsistencies(change(meta, cuts={"forward": cut})))
