"""Chemical reactions."""

from ingot.catalog.declare import Fixed, Parameter, model
from ingot.types import Scalar, clamp, eps


@model(gives="reaction_rate")
def ContractingGeometry(
    conversion_degree: Scalar, *, coef: Parameter[Scalar], order: Fixed[Scalar]
) -> Scalar:
    r"""Reaction on a shrinking core, $f = k (1 - \alpha)^n$.

    The core $1 - \alpha$ is kept within $[\epsilon, 1 - \epsilon]$.


    coef: rate coefficient, $k$
    order: order of the reaction, $n$
    """
    tiny = eps(conversion_degree)
    return coef * clamp(1.0 - conversion_degree, tiny, 1.0 - tiny) ** order
