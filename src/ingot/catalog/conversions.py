"""From one kind of value to another: parts of tensors, components, rotations."""

from ingot.catalog.declare import model, named
from ingot.types import MRP, R2, SR2, WR2, Scalar, Vec, euler_rodrigues, r2_from_sr2, skew, sym


@model(gives="output")
def R2ToSR2(input: R2) -> SR2:
    r"""The symmetric part, $(A + A^T) / 2$."""
    return sym(input)


@model(gives="output")
def R2ToWR2(input: R2) -> WR2:
    r"""The skew part, $(A - A^T) / 2$."""
    return skew(input)


@model(gives="output")
def SR2ToR2(input: SR2) -> R2:
    r"""A symmetric tensor as a matrix, $A_{ij} = A_{ji}$."""
    return r2_from_sr2(input)


@model(gives="output")
def ScalarToDiagonalSR2(input: Scalar) -> SR2:
    r"""A multiple of the unit tensor, $s I$."""
    return SR2.fill(input)


@model(gives=(named("{to[0]}"), named("{to[1]}"), named("{to[2]}")))
def VecComponents(from_: Vec, *, to: tuple[str, str, str]) -> tuple[Scalar, Scalar, Scalar]:
    r"""The components of a vector, $v_1, v_2, v_3$.

    to: a name for each component
    """
    return from_[0], from_[1], from_[2]


@model(gives="to")
def RotationMatrix(from_: MRP) -> R2:
    r"""The matrix of a rotation, $R = I + (4 (1 - \rho) W + 8 W^2) / (1 + \rho)^2$."""
    return euler_rodrigues(from_)
