"""Elastic laws."""

from collections.abc import Mapping
from typing import Any, Literal

from ingot.catalog.declare import Many, Parameter, model, named
from ingot.options import Range
from ingot.types import (
    MRP, R2, SR2, SSR4, Scalar, dev, euler_rodrigues, matmul, rotate, sym, transpose, vol,
)  # fmt: skip

_LABELS = {
    "YOUNGS_MODULUS": "E", "POISSONS_RATIO": "nu", "BULK_MODULUS": "K", "SHEAR_MODULUS": "G",
}  # fmt: skip

MODULI = {"E": Range(gt=0), "nu": Range(gt=-1, lt=0.5), "K": Range(gt=0), "G": Range(gt=0)}
"""Those of a solid that resists every strain."""

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


def _named(
    coefficients: tuple[Scalar, ...], coefficient_types: tuple[str, ...]
) -> dict[str, Scalar]:
    return dict(zip(coefficient_types, coefficients, strict=True))


def bulk_and_shear(
    coefficients: tuple[Scalar, ...], coefficient_types: tuple[str, ...]
) -> tuple[Scalar, Scalar]:
    """Bulk and shear modulus from any two elastic constants that are known."""
    given = _named(coefficients, coefficient_types)
    if set(given) == {"YOUNGS_MODULUS", "POISSONS_RATIO"}:
        e, nu = given["YOUNGS_MODULUS"], given["POISSONS_RATIO"]
        return e / (3.0 * (1.0 - 2.0 * nu)), e / (2.0 * (1.0 + nu))
    if set(given) == {"BULK_MODULUS", "SHEAR_MODULUS"}:
        return given["BULK_MODULUS"], given["SHEAR_MODULUS"]
    raise ValueError(f"no elastic constants from {' and '.join(coefficient_types)}")


@model(gives="stress", rewire=_names, labels={"coefficients": label_moduli}, usual=MODULI)
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


@model(gives=named("{block}", option="C"), labels={"coefficients": label_moduli}, usual=MODULI)
def IsotropicElasticityTensor(
    *, coefficients: Many[Parameter[Scalar]], coefficient_types: tuple[Modulus, ...]
) -> SSR4:
    r"""The stiffness of an isotropic solid, $C = 3 K I_{vol} + 2 G I_{dev}$.

    coefficients: two elastic constants
    coefficient_types: which constants they are
    """
    bulk, shear = bulk_and_shear(coefficients, coefficient_types)
    return SSR4.identity_vol() * (3.0 * bulk) + SSR4.identity_dev() * (2.0 * shear)


CubicModulus = Literal["YOUNGS_MODULUS", "POISSONS_RATIO", "SHEAR_MODULUS"]


@model(gives=named("{block}", option="C"), labels={"coefficients": label_moduli}, usual=MODULI)
def CubicElasticityTensor(
    *,
    coefficients: Many[Parameter[Scalar]],
    coefficient_types: tuple[CubicModulus, CubicModulus, CubicModulus],
) -> SSR4:
    r"""The stiffness of a cubic crystal along its axes: $\lambda + 2 \mu$ and $\lambda$ of $E$ and
    $\nu$ between normal components, $2 G$ for those in shear.

    coefficients: three elastic constants
    coefficient_types: which constants they are: Young's, Poisson's and the shear modulus
    """
    given = _named(coefficients, coefficient_types)
    if set(given) != {"YOUNGS_MODULUS", "POISSONS_RATIO", "SHEAR_MODULUS"}:
        raise ValueError(f"no elastic constants from {' and '.join(coefficient_types)}")
    e, nu = given["YOUNGS_MODULUS"], given["POISSONS_RATIO"]
    scale = e / ((1.0 + nu) * (1.0 - 2.0 * nu))
    along, across, shear = scale * (1.0 - nu), scale * nu, 2.0 * given["SHEAR_MODULUS"]
    return SSR4.of(*(
        (along if i < 3 else shear) if i == j else across if i < 3 and j < 3 else 0.0
        for i in range(6) for j in range(6)
    ))  # fmt: skip


@model(gives="stress")
def GeneralElasticity(
    strain: SR2, orientation: MRP, *, elastic_stiffness_tensor: Parameter[SSR4]
) -> SR2:
    r"""Hooke's law of a crystal, $\sigma = R (C : R^T \varepsilon R) R^T$.

    elastic_stiffness_tensor: stiffness along the axes of the crystal, $C$
    """
    turn = euler_rodrigues(orientation)
    return rotate(matmul(elastic_stiffness_tensor, rotate(strain, transpose(turn))), turn)


@model(gives="strain")
def GreenLagrangeStrain(deformation_gradient: R2) -> SR2:
    r"""The strain of Green and Lagrange, $\tfrac12 (F^T F - I)$."""
    stretch = matmul(transpose(deformation_gradient), deformation_gradient)
    return (sym(stretch) - SR2.identity()) * 0.5
