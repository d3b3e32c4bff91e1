"""Three models of the benchmark in JAX, for one point: (state, forces before, forces now) -> state.

Written as a user of JAX would: Newton's method in `lax.while_loop` with the Jacobian of `jacfwd`,
in the unknowns of the input files and by the rules of their solvers; `jit` and `vmap` come later.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import jax  # pyright: ignore[reportMissingImports]  # in an environment of its own
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np
from jax import lax  # pyright: ignore[reportMissingImports]

jax.config.update("jax_enable_x64", True)

Value = Any  # jax.Array: the type is known only where JAX is installed
State = dict[str, Value]
Step = Callable[[State, State, State], State]

EPSILON = float(np.finfo(np.float64).eps)
ABS_TOL, REL_TOL, MAX_UPDATES = 1e-10, 1e-8, 24  # of the solvers of all files


@dataclass(frozen=True, slots=True)
class JaxModel:
    """A step for one point, its state before the first step, and what of it a file outputs.

    forces: of each force of the step the entry of the load path that it is.
    """

    step: Step
    forces: dict[str, str]
    widths: dict[str, tuple[int, ...]]
    outputs: tuple[str, ...]
    initial: dict[str, str]


def dev(a: Value) -> Value:
    return a.at[:3].add(-a[:3].sum() / 3.0)


def isotropic_stress(strain: Value, young: float, poisson: float) -> Value:
    shear, bulk = young / (2.0 * (1.0 + poisson)), young / (3.0 * (1.0 - 2.0 * poisson))
    pressure = (bulk - 2.0 * shear / 3.0) * strain[:3].sum()
    return (2.0 * shear * strain).at[:3].add(pressure)


def von_mises(stress: Value) -> tuple[Value, Value]:
    """The effective stress and the deviator."""
    deviator = dev(stress)
    return jnp.sqrt(1.5 * deviator @ deviator + EPSILON), deviator


def yield_function(stress: Value, resistance: Value) -> tuple[Value, Value]:
    r"""$\sqrt{2/3} (\bar\sigma - \sigma_y - h)$ and its slope by the stress."""
    effective, deviator = von_mises(stress)
    return sqrt(2.0 / 3.0) * (effective - resistance), sqrt(1.5) * deviator / effective


def perzyna(f: Value, reference: float) -> Value:
    return jnp.where(f > 0.0, f / reference, 0.0) ** 2


def is_unconverged(size: Value, first: Value, updates: Value) -> Value:
    """Whether Newton's method goes on."""
    return (size >= ABS_TOL) & (size >= REL_TOL * first) & (updates < MAX_UPDATES)


def newton(residual: Callable[[Value], Value], guess: Value, *, line_search: bool = False) -> Value:
    """The root of a vector function from a guess."""
    jacobian = jax.jacfwd(residual)
    start = residual(guess)
    first = jnp.linalg.norm(start)

    def go_on(carry: tuple[Value, Value, Value]) -> Value:
        return is_unconverged(jnp.linalg.norm(carry[1]), first, carry[2])

    def update(carry: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
        u, r, updates = carry
        du = jnp.linalg.solve(jacobian(u), -r)
        if line_search:
            u, r = backtrack(residual, u, r, du)
        else:
            u = u + du
            r = residual(u)
        return u, r, updates + 1

    return lax.while_loop(go_on, update, (guess, start, 0))[0]


MAX_TRIALS = 4  # max_linesearch_iterations = 5 of the crystal's file: one less is tried


def backtrack(
    residual: Callable[[Value], Value], u: Value, r: Value, du: Value
) -> tuple[Value, Value]:
    """The unknowns and residual at the first of the halved steps that is accepted, or the last."""

    def is_rejected(alpha: Value, trial: Value) -> Value:
        size = trial @ trial
        return (size > r @ r + 2e-3 * alpha * (r @ du)) & (size > ABS_TOL**2)

    def go_on(carry: tuple[Value, Value, Value]) -> Value:
        alpha, trial, tried = carry
        return is_rejected(alpha, trial) & (tried < MAX_TRIALS)

    def halve(carry: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
        alpha, _, tried = carry
        return 0.5 * alpha, residual(u + 0.5 * alpha * du), tried + 1

    alpha, trial, _ = lax.while_loop(go_on, halve, (1.0, residual(u + du), 1))
    return u + alpha * du, trial


def scalar_newton(residual: Callable[[Value], Value], guess: Value) -> Value:
    """The root of a function of one number from a guess."""
    slope = jax.value_and_grad(residual)
    start = slope(guess)
    first = jnp.abs(start[0])

    def go_on(carry: tuple[Value, tuple[Value, Value], Value]) -> Value:
        return is_unconverged(jnp.abs(carry[1][0]), first, carry[2])

    def update(
        carry: tuple[Value, tuple[Value, Value], Value],
    ) -> tuple[Value, tuple[Value, Value], Value]:
        u, (r, dr), updates = carry
        u = u - r / dr
        return u, slope(u), updates + 1

    return lax.while_loop(go_on, update, (guess, start, 0))[0]


def radial_return(old: State, before: State, now: State) -> State:
    """Viscoplasticity with directions of the trial state: one unknown, the flow `gamma`."""
    dt, dt_before = now["t"] - before["t"], before["t"] - old["t_before"]
    has_history = jnp.abs(dt_before) > EPSILON
    rise = (old["gamma"] - old["gamma_before"]) / jnp.where(has_history, dt_before, 1.0)
    guess = old["gamma"] + jnp.where(has_history, rise * dt, 0.0)

    def overstress(plastic: Value, kinematic: Value) -> Value:
        return isotropic_stress(now["E"] - plastic, 1e5, 0.3) - 1000.0 * kinematic

    trial = overstress(old["plastic_strain"], old["kinematic_plastic_strain"])
    direction = yield_function(trial, 0.0)[1]

    def flowed(gamma: Value) -> State:
        flow = gamma - old["gamma"]
        return {
            "gamma": gamma,
            "plastic_strain": old["plastic_strain"] + flow * direction,
            "kinematic_plastic_strain": old["kinematic_plastic_strain"] + flow * direction,
            "equivalent_plastic_strain": (
                old["equivalent_plastic_strain"] + sqrt(2.0 / 3.0) * flow
            ),
        }

    def residual(gamma: Value) -> Value:
        new = flowed(gamma)
        stress = overstress(new["plastic_strain"], new["kinematic_plastic_strain"])
        resistance = 5.0 + 1000.0 * new["equivalent_plastic_strain"]
        return (gamma - old["gamma"]) / dt - perzyna(yield_function(stress, resistance)[0], 100.0)

    new = flowed(scalar_newton(residual, guess))
    stress = isotropic_stress(now["E"] - new["plastic_strain"], 1e5, 0.3)
    return {**new, "stress": stress, "gamma_before": old["gamma"], "t_before": before["t"]}


def chaboche(old: State, before: State, now: State) -> State:
    """Viscoplasticity with two back stresses: 19 unknowns."""
    dt = now["t"] - before["t"]
    rate = (now["E"] - before["E"]) / dt

    def split(u: Value) -> State:
        return {
            "stress": u[:6], "equivalent_plastic_strain": u[6], "X1": u[7:13], "X2": u[13:],
        }  # fmt: skip

    def join(state: State) -> Value:
        ep = state["equivalent_plastic_strain"][None]
        return jnp.concatenate([state["stress"], ep, state["X1"], state["X2"]])

    def back_stress_rate(
        x: Value, flow: Value, direction: Value, c: float, g: float, recovery: float, power: float
    ) -> Value:
        size = jnp.sqrt(x @ x + EPSILON)
        return (2.0 / 3.0 * c * direction - g * x) * flow - recovery * size ** (power - 1.0) * x

    def residual(u: Value) -> Value:
        new = split(u)
        resistance = 5.0 + 100.0 * (1.0 - jnp.exp(-1.2 * new["equivalent_plastic_strain"]))
        f, direction = yield_function(new["stress"] - new["X1"] - new["X2"], resistance)
        flow = perzyna(f, 100.0)
        rates = {
            "stress": isotropic_stress(rate - flow * direction, 1e5, 0.3),
            "equivalent_plastic_strain": sqrt(2.0 / 3.0) * flow,
            "X1": back_stress_rate(new["X1"], flow, direction, 10000.0, 100.0, 1e-8, 1.2),
            "X2": back_stress_rate(new["X2"], flow, direction, 1000.0, 9.0, 1e-10, 3.2),
        }
        return u - start - dt * join(rates)

    start = join(old)
    return split(newton(residual, start))


def symmetric(a: Value) -> Value:
    """The symmetric part of a matrix, in Mandel storage."""
    off = jnp.stack([a[1, 2] + a[2, 1], a[0, 2] + a[2, 0], a[0, 1] + a[1, 0]])
    return jnp.concatenate([jnp.diagonal(a), sqrt(0.5) * off])


def matrix(a: Value) -> Value:
    """The matrix of a symmetric tensor in Mandel storage."""
    x, y, z = sqrt(0.5) * a[3:]
    return jnp.array([[a[0], z, y], [z, a[1], x], [y, x, a[2]]])


def axial(a: Value) -> Value:
    """The axial vector of the skew part of a matrix."""
    return 0.5 * jnp.stack([a[2, 1] - a[1, 2], a[0, 2] - a[2, 0], a[1, 0] - a[0, 1]])


def spin(w: Value) -> Value:
    """The skew matrix of an axial vector."""
    return jnp.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def rotation(r: Value) -> Value:
    """The rotation matrix of modified Rodrigues parameters."""
    w, square = spin(r), r @ r
    return jnp.eye(3) + (4.0 * (1.0 - square) * w + 8.0 * w @ w) / (1.0 + square) ** 2


def exponential(w: Value) -> Value:
    """Modified Rodrigues parameters of a spin, by the formula of the peer."""
    square = w @ w
    is_large = square > EPSILON ** (1.0 / 3.0)
    safe = jnp.where(is_large, square, 1.0)
    large = jnp.tan(safe / 2.0) / (2.0 * safe * jnp.cos(safe / 2.0))
    return w * jnp.where(is_large, large, 0.25 + 5.0 * square**2 / 96.0)


def compose(a: Value, b: Value) -> Value:
    """The rotation `b`, then `a`."""
    top = (1.0 - b @ b) * a + (1.0 - a @ a) * b - 2.0 * jnp.cross(b, a)
    return top / (1.0 + (a @ a) * (b @ b) - 2.0 * a @ b)


# Slip directions and planes of face-centred cubic crystals, a pair where one lies in the other.
DIRECTIONS = ((0, 1, 1), (0, 1, -1), (1, 0, 1), (1, 0, -1), (1, 1, 0), (1, -1, 0))
PLANES = ((1, 1, 1), (-1, 1, 1), (1, -1, 1), (1, 1, -1))
SLIP_SYSTEMS = [(d, n) for d in DIRECTIONS for n in PLANES if np.dot(d, n) == 0]
SCHMID = jnp.array([np.outer(d, n) for d, n in SLIP_SYSTEMS]) / sqrt(6.0)
SYMMETRIC_SCHMID, AXIAL_SCHMID = jax.vmap(symmetric)(SCHMID), jax.vmap(axial)(SCHMID)


def crystal(old: State, before: State, now: State) -> State:
    """A single crystal of twelve slip systems: elastic strain, hardening, orientation at once."""
    dt = now["t"] - before["t"]
    d, w = now["deformation_rate"], now["vorticity"]
    size = jnp.linalg.norm(old["elastic_strain"])
    guess = old["elastic_strain"] + jnp.where(size < 1e-3, 0.1 * dt, 0.0) * d

    def residual(u: Value) -> Value:
        strain, hardening, orientation = u[:6], u[6], u[7:]
        q = rotation(orientation)
        stress = isotropic_stress(strain, 1e5, 0.25)
        # the stress in the crystal's frame, rather than twelve Schmid tensors in the other
        load = SYMMETRIC_SCHMID @ symmetric(q.T @ matrix(stress) @ q) / (50.0 + hardening)
        slip = 0.2 * jnp.abs(load) ** 7 * load
        plastic = q @ matrix(slip @ SYMMETRIC_SCHMID) @ q.T
        plastic_spin = axial(q @ spin(slip @ AXIAL_SCHMID) @ q.T)
        e, turn = matrix(strain), spin(w)
        strain_rate = d + symmetric(turn @ e - e @ turn - plastic)
        hardening_rate = 500.0 * (1.0 - hardening / 50.0) * jnp.abs(slip).sum()
        turning = w - plastic_spin + axial(plastic @ e - e @ plastic)
        return jnp.concatenate([
            strain - old["elastic_strain"] - dt * strain_rate,
            (hardening - old["slip_hardening"] - dt * hardening_rate)[None],
            orientation - compose(exponential(dt * turning), old["orientation"]),
        ])  # fmt: skip

    start = jnp.concatenate([guess, old["slip_hardening"][None], old["orientation"]])
    u = newton(residual, start, line_search=True)
    return {
        "elastic_strain": u[:6],
        "slip_hardening": u[6],
        "orientation": u[7:],
        "cauchy_stress": isotropic_stress(u[:6], 1e5, 0.25),
    }


SMALL_STRAIN = {"t": "times", "E": "strains"}

JAX_MODELS = {
    "radial_return": JaxModel(
        radial_return,
        SMALL_STRAIN,
        {
            "gamma": (), "plastic_strain": (6,), "kinematic_plastic_strain": (6,),
            "equivalent_plastic_strain": (), "stress": (6,), "gamma_before": (), "t_before": (),
        },
        (
            "gamma", "plastic_strain", "kinematic_plastic_strain", "equivalent_plastic_strain",
            "stress",
        ),
        {},
    ),
    "chaboche": JaxModel(
        chaboche,
        SMALL_STRAIN,
        {"stress": (6,), "equivalent_plastic_strain": (), "X1": (6,), "X2": (6,)},
        ("stress", "equivalent_plastic_strain", "X1", "X2"),
        {},
    ),
    "crystal": JaxModel(
        crystal,
        {"t": "times", "deformation_rate": "deformation_rate", "vorticity": "vorticity"},
        {"elastic_strain": (6,), "slip_hardening": (), "orientation": (3,), "cauchy_stress": (6,)},
        ("elastic_strain", "slip_hardening", "orientation", "cauchy_stress"),
        {"orientation": "initial_orientation"},
    ),
}  # fmt: skip
