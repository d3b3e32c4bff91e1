"""A number that a parameter cannot be by its meaning is taken, as the peer takes it, and told."""

import random
import warnings
from collections.abc import Mapping

import numpy as np
import pytest

import ingot
from ingot import IngotError, IngotWarning
from ingot.catalog import CATALOG, Declared, load
from ingot.hit import read_text
from ingot.model import Factory

load()
LAWS = {name: law for name, law in CATALOG.items() if law.usual}
PAIRS = {
    ("E", "nu"): "YOUNGS_MODULUS POISSONS_RATIO",
    ("K", "G"): "BULK_MODULUS SHEAR_MODULUS",
    ("E", "nu", "G"): "YOUNGS_MODULUS POISSONS_RATIO SHEAR_MODULUS",
}
USUAL = {"E": 2e5, "nu": 0.3, "K": 1e5, "G": 8e4}


def write_block(law: Declared, numbers: Mapping[str, float]) -> str:
    """A file with one law, of which some parameters are these numbers."""
    rows = []
    if "E" in law.usual:
        wanted = [names for names in PAIRS if numbers.keys() <= {*names}]
        names = wanted[-1] if law.name.startswith("Cubic") else wanted[0]
        words = " ".join(str(numbers.get(name, USUAL[name])) for name in names)
        rows = [f"coefficients = '{words}'", f"coefficient_types = '{PAIRS[names]}'"]
    else:
        own = [p.argument for p in law.parameters if p.default is None]
        rows = [f"{name} = {numbers.get(name, 1.0)}" for name in own]
    return "\n".join(["[Models]", "[law]", f"type = {law.name}", *rows, "[]", "[]"])


def doubts_of(text: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Factory(read_text(text)).model("law")
    return [w.message.problem.code for w in caught if isinstance(w.message, IngotWarning)]


def test_every_range_is_that_of_a_parameter() -> None:
    assert len(LAWS) >= 10
    for law in LAWS.values():
        names = {p.argument for p in law.parameters}
        assert law.usual.keys() <= (names if "coefficients" not in names else USUAL.keys())


@pytest.mark.parametrize("name", LAWS)
def test_numbers_out_of_range_are_told_and_others_are_not(name: str) -> None:
    law, draw = LAWS[name], random.Random(name)
    for parameter, within in law.usual.items():
        if parameter == "K" and name.startswith("Cubic"):
            continue
        for number in (draw.uniform(-2, 2) for _ in range(8)):
            text = write_block(law, {parameter: number})
            wanted = [] if within.holds(number) else ["unusual-value"]
            assert doubts_of(text) == wanted, f"{parameter} = {number}"
            if wanted:
                with pytest.raises(IngotError, match="unusual-value"):
                    Factory(read_text(text), strict=True).model("law")


def test_results_are_those_of_the_number_and_the_user_is_told_where() -> None:
    def stress(nu: float) -> float:
        law = ingot.laws.LinearIsotropicElasticity(
            coefficients=[1.0, nu], coefficient_types=["YOUNGS_MODULUS", "POISSONS_RATIO"]
        )
        strain = np.array([1.0, 0, 0, 0, 0, 0])
        return float(law({"strain": strain})["stress"][0])

    with pytest.warns(
        IngotWarning, match=r"'nu' should be a finite number above -1 and below 0\.5"
    ):
        found = stress(0.6)
    assert found == pytest.approx(0.4 / (1.6 * -0.2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stress(0.3)


def test_a_batch_is_looked_at_once() -> None:
    text = """
[Tensors]
  [moduli]
    type = Python
    expr = 'Scalar(torch.tensor([1.0, -1.0, -2.0]))'
  []
[]
[Models]
  [law]
    type = LinearIsotropicElasticity
    coefficients = 'moduli 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
"""
    assert doubts_of(text) == ["unusual-value"]
