"""Tables and smooth steps: parameters that are read off at a variable."""

from ingot.catalog.declare import Ascending, Fixed, Listed, T, model, named
from ingot.types import SR2, Scalar, Vec, clamp, eps, interpolate, where


@model(gives=named("{block}", option="output"))
def ScalarLinearInterpolation(
    argument: Scalar,
    *,
    abscissa: Ascending[Fixed[Scalar["*knot"]]],
    ordinate: Listed[Fixed[Scalar["*knot"]]],
) -> Scalar:
    r"""A table that is linear between knots and goes on as it ends,
    $y_i + (y_{i+1} - y_i) (x - x_i) / (x_{i+1} - x_i)$.

    abscissa: where the knots are, ascending
    ordinate: the values at the knots
    """
    return interpolate(argument, abscissa, ordinate, "knot")


@model.family(
    ScalarBilinearInterpolation=Scalar, VecBilinearInterpolation=Vec, SR2BilinearInterpolation=SR2
)(gives=named("{block}", option="output"))
def BilinearInterpolation(
    argument1: Scalar,
    argument2: Scalar,
    *,
    abscissa1: Ascending[Fixed[Scalar["*row"]]],
    abscissa2: Ascending[Fixed[Scalar["*column"]]],
    ordinate: Listed[Fixed[T, "*row", "*column"]],
) -> T:
    r"""A table that is linear in each of two variables and goes on as it ends,
    $y_{00} + (y_{10} - y_{00}) \xi + (y_{01} - y_{00}) \eta + (y_{11} - y_{10} - y_{01} + y_{00})
    \xi \eta$.

    abscissa1: where the rows are, ascending
    abscissa2: where the columns are, ascending
    ordinate: the values at rows and columns
    """
    at, knots = (argument1, argument2), (abscissa1, abscissa2)
    return interpolate(at, knots, ordinate, ("row", "column"))


def _share(argument: Scalar, lower_bound: Scalar, upper_bound: Scalar) -> Scalar:
    """How far between two bounds a value lies, kept clear of both."""
    tiny = eps(argument)
    return clamp((argument - lower_bound) / (upper_bound - lower_bound), tiny, 1.0 - tiny)


@model(gives="value")
def HermiteSmoothStep(
    argument: Scalar,
    *,
    lower_bound: Fixed[Scalar],
    upper_bound: Fixed[Scalar],
    complement: bool = False,
) -> Scalar:
    r"""A cubic from 0 to 1 between two bounds, $3 u^2 - 2 u^3$.

    lower_bound: where it leaves 0
    upper_bound: where it reaches 1
    complement: go from 1 to 0 instead
    """
    share = _share(argument, lower_bound, upper_bound)
    step = share * share * (3.0 - 2.0 * share)
    return 1.0 - step if complement else step


@model(gives=named("{block}", option="output"))
def SymmetricHermiteInterpolation(
    argument: Scalar, *, lower_bound: Fixed[Scalar], upper_bound: Fixed[Scalar]
) -> Scalar:
    r"""A symmetric bump of unit area between two bounds, $(24 c^2 - 32 c^3) / (x_1 - x_0)$ up to
    the middle.

    lower_bound: where it rises from 0, $x_0$
    upper_bound: where it is back at 0, $x_1$
    """
    share = _share(argument, lower_bound, upper_bound)
    half = where(share < 0.5, share, 1.0 - share)
    return half * half * (24.0 - 32.0 * half) / (upper_bound - lower_bound)
