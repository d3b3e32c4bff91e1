"""Sequences that tests compile: a Cahn-Hilliard step as the solver makes it."""

from ingot.fields.computes.parsed import ParsedCompute
from ingot.fields.computes.spectral import ForwardFFT, ReciprocalLaplacianFactor
from ingot.fields.solvers.multistep import semi_implicit
from ingot.fields.step import Ambient, Buffer, Source, Step

__all__ = ["cahn_hilliard", "parsed", "step"]

SPACE: dict[str, Source] = {"space": Ambient("space")}


def step(name: str, function: object, gives: str, **sources: object) -> Step:
    """A step whose options are those that are not sources."""
    kinds = (Buffer, Ambient)
    arguments = {k: v for k, v in sources.items() if isinstance(v, (*kinds, tuple))}
    options = {k: v for k, v in sources.items() if not isinstance(v, (*kinds, tuple))}
    return Step(name, function, arguments, (gives,), options)  # type: ignore[reportArgumentType]


def parsed(gives: str, expression: str, *inputs: str, **options: object) -> Step:
    """A ParsedCompute."""
    arguments = {**SPACE, "time": Ambient("time"), "inputs": tuple(map(Buffer, inputs))}
    given = {"names": inputs, "expression": expression, **options}
    return Step(gives, ParsedCompute, arguments, (gives,), given)


def cahn_hilliard() -> tuple[Step, ...]:
    """Potential, transforms, rate, and the semi-implicit update of `c`."""
    update = {
        **SPACE, "dt": Ambient("dt"), "spectrum": Buffer("cbar"), "rates": (Buffer("rate"),),
        "linear": Buffer("kappa"),
    }  # fmt: skip
    return (
        Step("mobility", ReciprocalLaplacianFactor, SPACE, ("M",), {"factor": 0.2}),
        parsed("kappa", "-0.001*k2*k2", extra_symbols=True),
        parsed("mu", "0.1*c^2*(c-1)^2", "c", derivatives=("c",)),
        Step("mubar", ForwardFFT, {**SPACE, "input": Buffer("mu")}, ("mubar",)),
        parsed("rate", "M*mubar", "M", "mubar"),
        Step("cbar", ForwardFFT, {**SPACE, "input": Buffer("c")}, ("cbar",)),
        Step("update", semi_implicit, update, ("c",), {"weights": (1.0,)}),
    )
