# ruff: noqa: F722 - names of axes
"""A polynomial whose coefficients are a table: a law of one's own, for `--load polynomial.py`."""

from ingot.catalog import Many, Parameter, model
from ingot.types import Scalar, interpolate


@model(gives="value")
def TabulatedPolynomial(
    argument: Scalar,
    temperature: Scalar,
    *,
    temperatures: Parameter[Scalar["*knot"]],
    coefficients: Many[Parameter[Scalar["*knot"]]],
) -> Scalar:
    r"""A polynomial by a temperature, $\sum_k c_k(T) x^k$, linear between those of its table.

    temperatures: where the table has knots, ascending
    coefficients: at the knots, a tensor for each power from 0 on, $c_k$
    """
    value = Scalar(0.0)
    for coefficient in reversed(coefficients):
        value = value * argument + interpolate(temperature, temperatures, coefficient, "knot")
    return value
