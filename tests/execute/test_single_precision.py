"""What single precision accepts is what double precision finds: values, states and tangents.

The bound is backward: a float32 result is as near as doubles are to each other when their inputs
are off by some units in the last place of float32. What float32 cannot tell it refuses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.drivers import TransientDriver, transient_driver
from ingot.execute import Backend, executor
from ingot.hit import read, read_text
from ingot.model import Factory, build
from ingot.program import Program, prepared, with_jacobian

FLOW = "reference_stress = 100\nexponent = 4\n"
STEEL = "E = 200e3\nnu = 0.3\nyield_stress = 250\n"
LINEAR = "isotropic_hardening = linear\nhardening_modulus = 1000\n"
VOCE = "isotropic_hardening = voce\nsaturated_hardening = 60\nsaturation_rate = 20\n"
MOVING = "kinematic_hardening = linear\nkinematic_modulus = 5000\n"
BACK = "C = '40e3 8e3'\ng = '400 60'\n"
SATURATING = f"kinematic_hardening = armstrong_frederick\n{BACK}"
FLOORS = {
    "perfect": 0.97, "linear": 0.97, "voce": 0.97, "moving": 0.96, "saturating": 0.97,
    "both": 0.97, "fischer": 0.97, "gurson": 0.97, "perzyna": 0.95, "chaboche": 0.95,
}  # fmt: skip
"""The part of the points at which doubles converge that converges in single precision too."""
MODELS = {
    "perfect": f"type = J2Plasticity\n{STEEL}",
    "linear": f"type = J2Plasticity\n{STEEL}{LINEAR}",
    "voce": f"type = J2Plasticity\n{STEEL}{VOCE}",
    "moving": f"type = J2Plasticity\n{STEEL}{VOCE}{MOVING}",
    "saturating": f"type = J2Plasticity\n{STEEL}{SATURATING}",
    "both": f"type = J2Plasticity\n{STEEL}{VOCE}{SATURATING}",
    "fischer": f"type = J2Plasticity\n{STEEL}{SATURATING}",
    "perzyna": f"type = PerzynaViscoplasticity\n{STEEL}{FLOW}{LINEAR}",
    "chaboche": f"type = ChabocheViscoplasticity\n{STEEL}{FLOW}{BACK}",
    "gurson": f"type = GTNDamage\n{STEEL}",
}
POINTS = 240
CLOCKS = ("t", "t~1")
ULPS = 2.0**-20  # eight units in the last place of float32
PERTURBED = 4
VALUE, SLOPE = 2.0**-17, 2.0**-8
"""The parts of a value and of a slope that may be lost besides: linear systems of stresses and
strains have condition numbers of some 1e5, and a slope on the wrong branch is off by far more."""
TIGHT = "abs_tol = 1e-8\nrel_tol = 0"
"""A residual of 1e9 comes first where yield functions grow exponentially, and 1e-8 of it is far."""


def rounded(x: Tensor) -> Tensor:
    return x.float().double()


@cache
def sloped(name: str, dtype: torch.dtype) -> Program:
    """A model for a precision; doubles come down all the way, whatever their residual was first."""
    text = str(read_text(f"[Models]\n[m]\n{MODELS[name]}[]\n[]"))
    if name == "fischer":
        text = text.replace("MinMapComplementarity", "FBComplementarity")
    if dtype == torch.float64:
        text = text.replace("type = Newton\n", f"type = Newton\n{TIGHT}\n")
        assert TIGHT in text
    model = build(read_text(text), "m")
    return with_jacobian(prepared(model, dtype=dtype), [("stress", "strain")])


@dataclass(frozen=True)
class Exact:
    """Points, what doubles give there, how far rounding moves that, and where doubles converged."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    moved: dict[str, Tensor]
    known: Tensor

    @property
    def steps(self) -> Tensor:
        """How long each is."""
        return self.inputs["t"] - self.inputs["t~1"]


def find_exact(program: Program, inputs: Mapping[str, Tensor], rng: torch.Generator) -> Exact:
    run = executor(program, "interpret")
    given = {n: rounded(x) for n, x in inputs.items()}
    outputs, statuses = run(given)
    known = torch.stack([s.converged for s in statuses]).all(0)
    moved = {n: torch.zeros_like(x) for n, x in outputs.items()}
    for _ in range(PERTURBED):
        near = {}
        for n, x in given.items():
            off = torch.rand(x.shape, generator=rng, dtype=x.dtype) * 2 - 1
            near[n] = x if n in CLOCKS else x + ULPS * off * _spread(find_size(x), x)
        found, _ = run(near)
        # a point at which rounding of the inputs decides whether it converges has no bound
        moved = {n: torch.maximum(moved[n], (found[n] - x).abs().nan_to_num(nan=torch.inf))
                 for n, x in outputs.items()}  # fmt: skip
    return Exact(given, outputs, moved, known)


def find_size(x: Tensor) -> Tensor:
    """The largest entry of each point."""
    return x.abs().reshape(len(x), -1).amax(1)


def _spread(points: Tensor, like: Tensor) -> Tensor:
    return points.reshape(-1, *(1,) * (like.ndim - 1))


def assert_near(
    exact: Exact, program: Program, backend: Backend, floor: float, *, is_alike: bool = False
) -> None:
    """No point that converges in both is off by more than rounding, and few converge in one.

    is_alike: the points are steps of one history, and rounding is that of its largest values.
    """
    run = executor(program, backend, torch.float32)
    found, statuses = run({n: x.float() for n, x in exact.inputs.items()})
    both = exact.known & torch.stack([s.converged for s in statuses]).all(0)
    assert int(both.sum()) >= floor * int(exact.known.sum()) > 0
    for name, x in exact.outputs.items():
        off = find_size(x - found[name].double())
        size = find_size(x[exact.known]).max() if is_alike else find_size(x)
        bound = (SLOPE if ":" in name else VALUE) * size + 8 * find_size(exact.moved[name])
        if (
            name == "flow_rate" and "strain" in exact.inputs
        ):  # where nothing flows, Fischer and Burmeister leave their epsilon
            bound = bound + 1e-6 * find_size(exact.inputs["strain"]) / exact.steps
        wrong = both & ~(off <= bound)
        assert not bool(wrong.any()), (name, wrong.nonzero()[:, 0].tolist(), off[wrong].tolist())


@cache
def draw(name: str, *, is_loaded: bool) -> Exact:
    program = sloped(name, torch.float64)
    rng = torch.Generator().manual_seed(3)

    def spread(low: float, high: float) -> Tensor:
        return low * (high / low) ** torch.rand(POINTS, generator=rng, dtype=torch.float64)

    def strains(low: float) -> Tensor:
        along = torch.randn(POINTS, 6, generator=rng, dtype=torch.float64)
        return along / along.norm(dim=1, keepdim=True) * spread(low, 5e-2)[:, None]

    inputs = {v.name: torch.zeros(POINTS, *v.kind.base).double() for v in program.inputs}
    inputs["strain"] = strains(1e-3 if is_loaded else 1e-5)
    inputs["t"] = spread(1e-3, 1e6)
    if "void_fraction~1" in inputs:
        inputs["void_fraction~1"] += 0.01
    if is_loaded:
        before, (status,) = executor(program, "interpret")(inputs)
        good = status.converged
        for n, x in before.items():
            if f"{n}~1" in inputs:
                inputs[f"{n}~1"] = torch.where(_spread(good, x), x, inputs[f"{n}~1"])
        inputs["strain"] = torch.where(good[:, None], inputs["strain"], 0.0) + strains(1e-5)
        inputs["t~1"], inputs["t"] = inputs["t"], inputs["t"] * (1 + spread(1e-2, 1e2))
    return find_exact(program, inputs, rng)


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
@pytest.mark.parametrize("is_loaded", [False, True], ids=["virgin", "loaded"])
@pytest.mark.parametrize("name", MODELS)
def test_single_precision_is_near_double_or_refuses(
    name: str, is_loaded: bool, backend: Backend
) -> None:
    """Strains of 1e-5 to 5e-2, steps of 1e-3 to 1e6 seconds, long beside the last or short."""
    exact = draw(name, is_loaded=is_loaded)
    assert_near(exact, sloped(name, torch.float32), backend, FLOORS[name])


# published models

PUBLISHED = {
    "rate_independent_plasticity/isoharden": 0.97,
    "rate_independent_plasticity/gurson": 0.97,
    "viscoplasticity/chaboche": 0.95,
    "viscoplasticity/drucker_prager": 0.95,
    "viscoplasticity/isokinharden": 0.95,
    "viscoplasticity/kinharden": 0.95,
    "viscoplasticity/perfect": 0.95,
    "viscoplasticity/radial_return": 0.95,
    "recovery/static_recovery": 0.95,
    "km_flow/simple_mix": 0.9,
    "viscoelasticity/burgers": 0.97,
    "viscoelasticity/zener": 0.97,
}


def draw_steps(driver: TransientDriver, points: int) -> dict[str, Tensor]:
    """Steps of a published history, each from the state it had there, shortened or lengthened."""
    rng = torch.Generator().manual_seed(7)
    history, given = driver.run("kernel").outputs, driver.transient
    step = torch.randint(1, driver.steps, (points,), generator=rng)
    place = [torch.randint(0, n, (points,), generator=rng) for n in driver.batch]
    part = 10 ** (2.5 * torch.rand(points, generator=rng, dtype=torch.float64) - 2)

    def take(name: str, base: tuple[int, ...], steps: Tensor) -> Tensor:
        every = given.prescribed.get(name, history.get(name))
        if every is None:
            return torch.zeros(points, *base, dtype=torch.float64)
        batch = every.shape[1 : every.ndim - len(base)]
        return every[(steps, *(p % n for p, n in zip(place, batch, strict=False)))].double()

    inputs = {}
    for v in driver.program.inputs:
        name, _, lag = v.name.partition("~")
        found = take(name, v.kind.base, step - int(bool(lag)))
        if name in given.prescribed and not lag:
            old = take(name, v.kind.base, step - 1)
            found = old + _spread(part, found) * (found - old)
        inputs[v.name] = found
    return inputs


@pytest.mark.exhaustive
@pytest.mark.parametrize("backend", ["interpret", "kernel"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_are_near_double_or_refuse(
    name: str, backend: Backend, cases: Path
) -> None:
    file = cases / "regression" / "solid_mechanics" / name / "model.i"
    driver = transient_driver(Factory(read(file)), "driver")
    inputs = draw_steps(driver, 600)
    output = next(iter(driver.model.outputs))
    force = next(n for n in driver.forces if n != driver.clock.name)
    double, single = (
        with_jacobian(prepared(driver.model, driver.shapes, dtype), [(output, force)])
        for dtype in (torch.float64, torch.float32)
    )
    exact = find_exact(double, inputs, torch.Generator().manual_seed(3))
    assert_near(exact, single, backend, PUBLISHED[name], is_alike=True)
