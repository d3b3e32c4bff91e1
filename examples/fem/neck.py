"""What both necking bars share: a mesh of an eighth, a material at finite strain, a picture."""

from collections.abc import Callable
from pathlib import Path

import common
import numpy as np

import ingot
from ingot import laws
from ingot.hosts import State

PIOLA, GRADIENT = "first_piola_kirchhoff_stress", "deformation_gradient"
LENGTH, WIDTH = 26.667, 6.413
"""Of an eighth of a bar, which is thinner by 2 % in the middle."""

STRETCH = {"bar": 5.5, "crystal": 9.0}
STEPS = 35
DRAWN = {"bar": "equivalent_plastic_strain", "crystal": "slip_hardening"}


def begin(name: str, points: tuple[int, ...]) -> State:
    """A small-strain material of this folder, at finite strain by its logarithm."""
    small = ingot.build(ingot.read(common.HERE / f"{name}.i"), name)
    finite = laws.LogarithmicStrain(model=small, name=name)
    material = ingot.compile(finite, derivative=(f"{PIOLA}:{GRADIENT}",))
    # the crystal reads the rate of strain, and so remembers what is undeformed at first
    return State(material, points, {GRADIENT: np.eye(3)} if name == "crystal" else {})


def give(name: str, points: tuple[int, ...]) -> dict[str, np.ndarray]:
    """What a material has of its own: a crystal, cube axes along those of the bar."""
    return {"orientation": np.zeros((*points, 3))} if name == "crystal" else {}


def mesh_bar(across: int, along: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and hexahedra of twenty nodes: eight corners, then edges below, above and upright."""
    counts = np.array([across, across, along])
    axes = [np.linspace(0, 1, 2 * n + 1) for n in counts]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    z = LENGTH * grid[:, 2] ** 1.6  # finer in the middle of the bar
    thin = 1 - 0.02 * (1 - z / LENGTH)
    points = np.stack([WIDTH * grid[:, 0] * thin, WIDTH * grid[:, 1] * thin, z], axis=-1)
    corners = [(0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0)]
    corners += [(i, j, 2) for i, j, _ in corners]
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)]
    edges += [(0, 4), (1, 5), (2, 6), (3, 7)]
    middle = [tuple((np.array(corners[a]) + corners[b]) // 2) for a, b in edges]
    first = 2 * np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, 1, 3)
    places = first + np.array([*corners, *middle])
    cells = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), tuple(2 * counts + 1))
    used, numbers = np.unique(cells, return_inverse=True)
    return points[used], numbers.reshape(cells.shape)


def hold(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of displacements that are prescribed by symmetry or pulled, and of the pulled."""
    nodes = np.arange(len(points))
    planes = [3 * nodes[np.abs(points[:, i]) < 1e-9] + i for i in range(3)]
    pulled = 3 * nodes[points[:, 2] > LENGTH - 1e-9] + 2
    return np.concatenate([*planes, pulled]), pulled


def show(
    title: str, file: Path, record: common.Record, value: np.ndarray, u: np.ndarray,
    mesh: tuple[np.ndarray, np.ndarray],
) -> None:  # fmt: skip
    """Print a record, and draw the face of the bar that is cut along, as it is deformed.

    value: of every element.
    """
    record.print(title)
    points, cells = mesh
    print(f"  the waist has {measure_waist(u, points):.6f} of its width")
    name = file.stem.split("_")[-1]
    face = np.flatnonzero((np.abs(points[cells[:, :8], 1]) < 1e-9).sum(1) == 4)
    corners = cells[face][:, [0, 1, 5, 4]]
    moved = (points + u.reshape(-1, 3))[:, [0, 2]]
    common.draw(file, moved, corners, value[face], DRAWN[name].replace("_", " "), record)


def stretch_bars(
    title: str,
    stretch: Callable[[str, tuple[int, int]], tuple[common.Record, State, np.ndarray]],
    folder: Path, size: tuple[int, int],
) -> dict[str, common.Record]:  # fmt: skip
    """Stretch a bar of each material, print and draw it; the records of Newton's method."""
    records = {}
    for name in STRETCH:
        records[name], state, u = stretch(name, size)
        value = state[DRAWN[name]].mean(0).numpy()
        file = folder / f"neck_{common.HOSTS[title]}_{name}.png"
        show(f"{title}, {name}", file, records[name], value, u, mesh_bar(*size))
    return records


def measure_waist(u: np.ndarray, points: np.ndarray) -> float:
    """The half width of the middle of the bar, by its first."""
    edge = np.argmax(points[:, 0] - 1e3 * points[:, 1] - 1e3 * points[:, 2])
    return float(1 + u[3 * edge] / points[edge, 0])
