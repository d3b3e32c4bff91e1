"""Sequences that tests compile, as a Cahn-Hilliard step, and states to run them on."""

import dataclasses

import torch

from ingot.fields.computes.parsed import ParsedCompute
from ingot.fields.computes.spectral import ForwardFFT, ReciprocalLaplacianFactor
from ingot.fields.solvers.multistep import semi_implicit
from ingot.fields.spaces import Mode, space
from ingot.fields.step import Ambient, Buffer, Source, State, Step

__all__ = ["cahn_hilliard", "copied", "largest_difference", "parsed", "state_of", "step"]

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


def state_of(
    sizes: tuple[int, ...],
    *names: str,
    seed: int = 0,
    mode: Mode = "NONE",
    dtype: torch.dtype = torch.float64,
    device: str = "cpu",
) -> State:
    """A state on a box, with random fields between 0.2 and 0.8."""
    box = space(sizes, upper=(3.0, 2.0, 1.0), mode=mode, dtype=dtype, device=device)
    state = State(box, dt=1e-3, time=0.25)
    torch.manual_seed(seed)
    for name in names:
        field = 0.2 + 0.6 * torch.rand(sizes, dtype=torch.float64)
        state.buffers[name] = field.to(device, dtype)
    return state


def copied(state: State) -> State:
    """A state that shares nothing that a run replaces."""
    return dataclasses.replace(
        state, buffers=dict(state.buffers), old=dict(state.old), done=set(state.done)
    )


def largest_difference(one: State, other: State, *names: str) -> float:
    """How far buffers lie apart, measured by the largest value."""
    worst = 0.0
    for name in names:
        a, b = one.buffers[name], other.buffers[name]
        assert a.shape == b.shape and a.dtype == b.dtype
        scale = float(b.abs().max()) or 1.0
        worst = max(worst, float((a - b).abs().max()) / scale)
    return worst
