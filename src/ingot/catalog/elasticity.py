"""Elastic laws."""

from collections.abc import Mapping
from typing import Any, Literal

from ingot.catalog.declare import Many, Parameter, model
from ingot.types import SR2, Scalar, dev, vol

_LABELS = {
    "YOUNGS_MODULUS": "E", "POISSONS_RATIO": "nu", "BULK_MODULUS": "K", "SHEAR_MODULUS": "G",
}  # fmt: skip

Modulus = Literal["YOUNGS_MODULUS", "POISSONS_RATIO", "BULK_MODULUS", "SHEAR_MODULUS"]


def _names(names: dict[str, str], options: dict[str, object]) -> dict[str, str]:
    """Rates carry a suffix; a compliance reads stress and gives strain."""
    suffix = "_rate" if options["rate_form"] else ""
    strain, stress = names["strain"] + suffix, names["stress"] + suffix
    if options["compliance"]:
        strain, stress = stress, strain
    return {**names, "strain": strain, "stress": stress}


def label_moduli(options: Mapping[str, Any]) -> list[str]:
    """How the elastic constants of a law are called, in their order."""
    return [_LABELS[name] for name in options["coefficient_types"]]


def bulk_and_shear(
    coefficients: tuple[Scalar, ...], coefficient_types: tuple[str, ...]
) -> tuple[Scalar, Scalar]:
    """Bulk and shear modulus from any two elastic constants that are known."""
    given = dict(zip(coefficient_types, coefficients, strict=True))
    if set(given) == {"YOUNGS_MODULUS", "POISSONS_RATIO"}:
        e, nu = given["YOUNGS_MODULUS"], given["POISSONS_RATIO"]
        return e / (3.0 * (1.0 - 2.0 * nu)), e / (2.0 * (1.0 + nu))
    if set(given) == {"BULK_MODULUS", "SHEAR_MODULUS"}:
        return given["BULK_MODULUS"], given["SHEAR_MODULUS"]
    raise ValueError(f"no elastic constants from {' and '.join(coefficient_types)}")


@model(gives="stress", rewire=_names, labels={"coefficients": label_moduli})
def LinearIsotropicElasticity(
    strain: SR2,
    *,
    coefficients: Many[Parameter[Scalar]],
    coefficient_types: tuple[Modulus, ...],
    compliance: bool = False,
    rate_form: bool = False,
) -> SR2:
    r"""Hooke's law, $\sigma = 3 K \mathrm{vol}\, \varepsilon + 2 G \mathrm{dev}\, \varepsilon$.

    coefficients: two elastic constants
    coefficient_types: which constants they are
    compliance: give strain from stress instead
    rate_form: relate the rates instead
    """
    bulk, shear = bulk_and_shear(coefficients, coefficient_types)
    if compliance:
        return vol(strain) / (3.0 * bulk) + dev(strain) / (2.0 * shear)
    return vol(strain) * (3.0 * bulk) + dev(strain) * (2.0 * shear)
