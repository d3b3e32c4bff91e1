# ruff: noqa: F722 - names of axes
"""A creep rate that a small network has learned: a law of one's own, for `--load network.py`.

The weights are parameters: promoted (`-p residual.rate.weights`) they are trained through a solve.
"""

from ingot.catalog import Parameter, model
from ingot.types import Scalar, contract, tanh, total


def silu(x: Scalar) -> Scalar:
    r"""$x / (1 + e^{-x})$, which no argument overflows."""
    return 0.5 * x * (1.0 + tanh(0.5 * x))


@model(gives="rate")
def NetworkCreepRate(
    stress: Scalar,
    temperature: Scalar,
    creep_strain: Scalar,
    *,
    by_stress: Parameter[Scalar["*hidden"]],
    by_temperature: Parameter[Scalar["*hidden"]],
    by_strain: Parameter[Scalar["*hidden"]],
    first: Parameter[Scalar["*hidden"]],
    weights: Parameter[Scalar["*inner", "*hidden"]],
    second: Parameter[Scalar["*inner"]],
    result: Parameter[Scalar["*inner"]],
) -> Scalar:
    r"""Two hidden layers, $\dot\epsilon = r \cdot s(W s(a \sigma + b T + c \epsilon + d) + e)$ with
    $s(x) = x / (1 + e^{-x})$.

    by_stress: how stress enters the first layer, $a$
    by_temperature: how temperature enters it, $b$
    by_strain: how strain enters it, $c$
    first: its offsets, $d$
    weights: from the first layer to the second, $W$
    second: the offsets of the second, $e$
    result: from the second layer to the rate, $r$
    """
    entering = by_stress * stress + by_temperature * temperature + by_strain * creep_strain
    hidden = silu(entering + first)
    return total(result * silu(contract(weights, hidden, "hidden") + second), "inner")
