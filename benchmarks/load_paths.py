"""Load paths of the benchmark: (case, batch) -> the `[Tensors]` entries that drive its input file.

NumPy alone, so that both interpreters import it; point i is the same point in every batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEPS = 100  # rows of every history; the first holds the initial state and is not evaluated


@dataclass(frozen=True, slots=True)
class Case:
    """One input file, and the entries of its `[Tensors]` that vary over the batch.

    `kinds` gives the expression of each entry, with `{}` for the values.
    """

    name: str
    file: str
    kinds: dict[str, str]
    draw: Callable[[int], dict[str, Array]]
    driver: str = "driver"
    axes: tuple[tuple[str, int], ...] = ()  # variables with an axis of their own, and its extent
    redirect: tuple[str, ...] = ()  # snippets that make the driver read entries the file lacks


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the input files are, and where load paths may be written."""

    cases: Path
    scratch: Path


def histories(case: Case, batch: int) -> dict[str, Array]:
    """The values of every driven `[Tensors]` entry, the same for every call."""
    return {name: np.ascontiguousarray(value) for name, value in case.draw(batch).items()}


def overrides(case: Case, batch: int, scratch: Path) -> list[str]:
    """Write the histories under scratch and give the HIT snippets that make a file read them."""
    folder = scratch.resolve() / f"{case.name}-{batch}"
    folder.mkdir(parents=True, exist_ok=True)
    snippets = list(case.redirect)
    for name, value in histories(case, batch).items():
        path = folder / f"{name}.npy"
        np.save(path, value)
        values = f'torch.from_numpy(np.load("{path.as_posix()}"))'
        expression = case.kinds[name].format(values)
        snippets.append(f"Tensors/{name}/type:=Python")
        snippets.append(f"Tensors/{name}/expr:='''{expression}'''")
    return snippets


def ramp(final: Array) -> Array:
    """From zero to each point's final value in equal steps, (STEPS, *final.shape)."""
    return np.linspace(0.0, 1.0, STEPS).reshape(-1, *[1] * final.ndim) * final


def held(value: Array) -> Array:
    """Each point's value at every step."""
    return np.broadcast_to(value, (STEPS, *value.shape))


def draws(seed: int, batch: int) -> tuple[Array, Array]:
    """Uniform and normal numbers, a row of nine per point."""
    uniform, normal = np.random.default_rng(seed).spawn(2)
    return uniform.random((batch, 9)), normal.standard_normal((batch, 9))


def deviatoric(normal: Array) -> Array:
    """The deviator of symmetric tensors in Mandel storage, six normal numbers each."""
    result = normal.copy()
    result[:, :3] -= normal[:, :3].mean(axis=1, keepdims=True)
    return result


def straining(seed: int) -> Callable[[int], dict[str, Array]]:
    """Proportional straining: rate over six decades, any direction, equivalent strain 0.05 to 0.15.

    The trace is within a tenth of the equivalent strain, so that points yield at different steps.
    """

    def draw(batch: int) -> dict[str, Array]:
        uniform, normal = draws(seed, batch)
        end_time = 10.0 ** (-1.0 + 6.0 * uniform[:, 0])
        direction = deviatoric(normal[:, :6])
        direction *= np.sqrt(1.5) / np.linalg.norm(direction, axis=1, keepdims=True)
        direction[:, :3] += (0.2 * uniform[:, 1:2] - 0.1) / 3.0
        amplitude = 0.05 + 0.1 * uniform[:, 2:3]
        return {"times": ramp(end_time), "strains": ramp(amplitude * direction)}

    return draw


def turning(seed: int) -> Callable[[int], dict[str, Array]]:
    """Constant deformation rate and vorticity about the file's, for crystals of any orientation.

    The rate keeps within a fifth of the file's size. Its direction strays by a tenth: at two tenths
    the peer's first step fails for a few points in ten thousand, and with them for the whole batch.
    """

    def draw(batch: int) -> dict[str, Array]:
        uniform, normal = draws(seed, batch)
        end_time = 1.0 + 9.0 * uniform[:, 0]
        written = np.array([0.1, -0.05, -0.05, 0.0, 0.0, 0.0])
        size = np.linalg.norm(written)
        direction = written / size + 0.1 * deviatoric(normal[:, :6])
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        vorticity = np.array([0.1, -0.05, -0.05]) + 0.02 * normal[:, 6:9]
        return {
            "times": ramp(end_time),
            "deformation_rate": held(size * (0.8 + 0.4 * uniform[:, 4:5]) * direction),
            "vorticity": held(vorticity),
            "initial_orientation": orientations(uniform[:, 1:4]),
        }

    return draw


def growing(seed: int) -> Callable[[int], dict[str, Array]]:
    """Proportional straining about the file's, for a void fraction within a half of the file's.

    Voids grow by the trace. The direction strays by a tenth.
    """

    def draw(batch: int) -> dict[str, Array]:
        uniform, normal = draws(seed, batch)
        end_time = 10.0 ** (-1.0 + 6.0 * uniform[:, 0])
        root = np.sqrt(2.0)
        written = np.array([0.1, -0.03, -0.01, -0.01 * root, 0.02 * root, 0.015 * root])
        size = np.linalg.norm(written)
        direction = written / size + 0.1 * deviatoric(normal[:, :6])
        amplitude = size * (0.8 + 0.4 * uniform[:, 1:2])
        return {
            "times": ramp(end_time),
            "strains": ramp(amplitude * direction),
            "f0": 0.005 + 0.01 * uniform[:, 2],
        }

    return draw


def stressing(seed: int) -> Callable[[int], dict[str, Array]]:
    """Five components of stress about the file's and one of strain, each in proportion to time."""

    def draw(batch: int) -> dict[str, Array]:
        uniform, normal = draws(seed, batch)
        root = np.sqrt(2.0)
        written = np.array([300.0, -100.0, -50.0, 0.0, 400.0 * root, -75.0 * root])
        size = np.linalg.norm(written)
        prescribed = size * (0.8 + 0.2 * uniform[:, 0:1]) * (written / size + 0.1 * normal[:, :6])
        prescribed[:, 3] = 0.04 * uniform[:, 1] - 0.02  # this component is a strain
        control = np.ones((batch, 6))
        control[:, 3] = 0.0
        return {
            "drawn_times": ramp(100.0 * (0.5 + uniform[:, 2])),
            "drawn_stresses": ramp(prescribed),
            "control": held(control),
        }

    return draw


def pulling(seed: int) -> Callable[[int], dict[str, Array]]:
    """Uniaxial tension at rates about the file's, of polycrystals of five random grains."""

    def draw(batch: int) -> dict[str, Array]:
        uniform, _ = draws(seed, batch)
        rate = np.zeros((batch, 6))
        rate[:, 0] = 1e-3 * (0.8 + 0.4 * uniform[:, 0])
        grains = np.random.default_rng([seed, 1]).random((batch, 5, 3))
        return {
            "times": ramp(50.0 * (0.8 + 0.4 * uniform[:, 1])),
            "prescribed": held(rate),
            "control": held(np.broadcast_to(np.eye(6)[0], (batch, 6))),
            "vorticity": held(np.zeros((batch, 3))),
            "initial_orientation": orientations(grains.reshape(-1, 3)).reshape(batch, 5, 3),
        }

    return draw


def orientations(uniform: Array) -> Array:
    """Modified Rodrigues parameters of uniformly distributed rotations, norm at most one.

    Shoemake's quaternions; of $q$ and $-q$ the one with $w >= 0$, so that $v / (1 + w)$ is short.
    """
    first, second = 2.0 * np.pi * uniform[:, 1], 2.0 * np.pi * uniform[:, 2]
    small, large = np.sqrt(1.0 - uniform[:, 0]), np.sqrt(uniform[:, 0])
    vector = np.stack(
        [small * np.sin(first), small * np.cos(first), large * np.sin(second)], axis=1
    )
    scalar = large * np.cos(second)
    vector[scalar < 0.0] *= -1.0
    return vector / (1.0 + np.abs(scalar))[:, None]


SMALL_STRAIN = {"times": "Scalar({})", "strains": "SR2({})"}
CRYSTAL = {
    "times": "Scalar({})",
    "deformation_rate": "SR2({})",
    "vorticity": "WR2({})",
    "initial_orientation": "MRP({})",
}
POLYCRYSTAL = {
    "times": "Scalar({})",
    "prescribed": "SR2({})",
    "control": "SR2({})",
    "vorticity": "WR2({})",
    "initial_orientation": "MRP({}, sub_batch_ndim=1).sub_batch.retag(1)",
}
MIXED = {"drawn_times": "Scalar({})", "drawn_stresses": "SR2({})", "control": "SR2({})"}
VOIDS = SMALL_STRAIN | {"f0": "Scalar({})"}
MECHANICS = "neml2/regression/solid_mechanics"
VERIFICATION = "neml2/verification/solid_mechanics"

CASES = {
    case.name: case
    for case in (
        Case(
            "isoharden",
            f"{MECHANICS}/rate_independent_plasticity/isoharden/model.i",
            SMALL_STRAIN,
            straining(seed=1),
        ),
        Case(
            "chaboche",
            f"{MECHANICS}/viscoplasticity/chaboche/model.i",
            SMALL_STRAIN,
            straining(seed=2),
        ),
        Case(
            "crystal",
            f"{MECHANICS}/crystal_plasticity/single_crystal_coupled/model.i",
            CRYSTAL,
            turning(seed=3),
        ),
        Case(
            "radial_return",
            f"{MECHANICS}/viscoplasticity/radial_return/model.i",
            SMALL_STRAIN,
            straining(seed=4),
        ),
        Case(
            "gtn",
            f"{MECHANICS}/rate_independent_plasticity/gurson/model.i",
            VOIDS,
            growing(seed=5),
        ),
        Case(
            "mixed_control",
            f"{VERIFICATION}/mixed_control/mixed_control.i",
            MIXED,
            stressing(seed=6),
            # The file's own entries are tables, which take no expression.
            redirect=(
                "Drivers/driver/prescribed_time:=drawn_times",
                "Drivers/driver/prescribed_SR2_values:='drawn_stresses control'",
            ),
        ),
        Case(
            "decoupled",
            f"{MECHANICS}/crystal_plasticity/single_crystal_decoupled/model.i",
            CRYSTAL,
            turning(seed=7),
        ),
        Case(
            "taylor",
            f"{MECHANICS}/crystal_plasticity/taylor/model.i",
            POLYCRYSTAL,
            pulling(seed=8),
            axes=(("elastic_strain", 5), ("orientation", 5), ("slip_hardening", 5)),
        ),
    )
}

IN_JAX = ("radial_return", "chaboche", "crystal")  # the cases that `jax_models.py` holds too
