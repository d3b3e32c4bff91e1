"""Laws that divide by zero by their parameters are named; those defined anywhere are not."""

import pytest

from ingot.catalog import load
from ingot.catalog.schema import describe_law
from ingot.drivers.singular import find_singular
from ingot.hit import read_text
from ingot.model import build

ELASTIC = """
[Tensors]
  [ratios]
    type = Python
    expr = 'Scalar(torch.tensor([0.3, 0.5]))'
  []
[]
[Models]
  [m]
    type = {kind}
    E = 200e3
    nu = {nu}
    {more}
  []
[]
"""


@pytest.mark.parametrize("nu", ["0.3", "0.49999", "0", "-0.9"])
def test_what_is_finite_is_not_told(nu: str) -> None:
    text = ELASTIC.format(kind="IsotropicElasticity", nu=nu, more="")
    assert not list(find_singular(build(read_text(text), "m")))


def test_one_point_of_a_batch_is_told() -> None:
    values = "coefficients = '200e3 ratios'\ncoefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'"
    text = ELASTIC.format(kind="LinearIsotropicElasticity", nu="0", more=values)
    text = text.replace("    E = 200e3\n    nu = 0\n", "")
    (problem,) = find_singular(build(read_text(text), "m"))
    assert problem.message == "LinearIsotropicElasticity divides by zero with nu = 0.5"


def test_a_law_inside_a_solve_is_told_once() -> None:
    text = ELASTIC.format(kind="J2Plasticity", nu="0.3", more="yield_stress = 1")
    model = build(read_text(text), "m")
    for name, parameter in model.named_parameters():
        if name.endswith(".nu"):
            parameter.data.fill_(0.5)  # set_parameter refuses it: it is out of its range
    (problem,) = find_singular(model)
    assert problem.code == "singular-law"


def test_of_the_catalogue_only_examples_without_a_width_are_told() -> None:
    told = {}
    for law in load().values():
        text = describe_law(law)["example"]
        model = build(tree := read_text(text), tree.names("Models")[0])
        for problem in find_singular(model):
            told[law.name] = problem.message
    # an interval from 1 to 1, and a pore space that is all residual
    assert told.keys() == {"EffectiveSaturation", "SymmetricHermiteInterpolation"}
    assert told["SymmetricHermiteInterpolation"].endswith("lower_bound = 1, upper_bound = 1")
