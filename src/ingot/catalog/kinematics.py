"""Eigenstrains and deformation."""

from ingot.catalog.declare import Fixed, Parameter, model
from ingot.types import SR2, Scalar


@model(gives="eigenstrain")
def ThermalEigenstrain(
    temperature: Scalar, *, reference_temperature: Fixed[Scalar], CTE: Parameter[Scalar]
) -> SR2:
    r"""Isotropic thermal strain, $\varepsilon = \alpha (T - T_0) I$.

    reference_temperature: temperature of zero strain, $T_0$
    CTE: coefficient of thermal expansion, $\alpha$
    """
    stretch = CTE * (temperature - reference_temperature)
    return SR2.of(stretch, stretch, stretch, 0.0, 0.0, 0.0)
