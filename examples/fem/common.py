"""What the finite-element examples share: a mesh, two materials, Newton's record, a picture."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from scipy.sparse.linalg import spsolve

import ingot
from ingot.hosts import Increments, State

HERE = Path(__file__).parent
RADIUS = 0.3
"""Of the hole in a quarter of a plate, whose side is 1."""

STRETCH = {"steel": 0.006, "crystal": 0.003}
"""Of the plate, for each material of this folder."""

HOSTS = {"scikit-fem": "skfem", "FElupe": "felupe", "torch-fem": "torchfem", "FEniCSx": "dolfinx"}
"""What pictures of a host are called."""

DRAWN = {"steel": "equivalent_plastic_strain", "crystal": "slip_hardening"}
"""What a picture shows of a material."""

TOLERANCE = 1e-8  # of forces, by the largest that was met: Newton's last step makes it 1e-12
MAX_ITERATIONS = 12


def compile_material(name: str) -> ingot.Artifact:
    """A material of this folder, with its consistent tangent."""
    model = ingot.build(ingot.read(HERE / f"{name}.i"), name)
    return ingot.compile(model, derivative=("stress:strain",))


def turn_grains(name: str, elements: int) -> dict[str, np.ndarray]:
    """The orientations of five grains in bands of elements, as modified Rodrigues parameters."""
    if name != "crystal":
        return {}
    axes = np.random.default_rng(3).normal(size=(5, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    turns = axes * np.tan(np.linspace(0.3, 1.2, 5)[:, None] / 4)
    return {"orientation": turns[np.arange(elements) * 5 // elements, None, :]}


def grade_plate(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and quadrilaterals of a quarter plate with a hole, finer towards the hole.

    size: elements along an edge; there are twice as many around the hole.
    """
    angle = np.linspace(0, np.pi / 2, 2 * size + 1)
    edge = np.minimum(1 / np.maximum(np.cos(angle), 1e-9), 1 / np.maximum(np.sin(angle), 1e-9))
    depth = np.linspace(0, 1, size + 1)[:, None] ** 1.5
    length = RADIUS + (edge - RADIUS) * depth
    points = np.stack([length * np.cos(angle), length * np.sin(angle)], axis=-1).reshape(-1, 2)
    points[np.abs(points) < 1e-12] = 0.0
    row = 2 * size + 1
    first = (np.arange(size)[:, None] * row + np.arange(2 * size)).reshape(-1)
    return points, np.stack([first, first + row, first + row + 1, first + 1], axis=-1)


@dataclass
class Record:
    """What a run tells: residuals of Newton's method, forces, and where the time went."""

    points: int
    residuals: list[list[float]] = field(default_factory=list)
    curve: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0)])
    times: dict[str, list[float]] = field(default_factory=dict)
    cuts: int = 0

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Time what is done once for all points."""
        begin = time.perf_counter()
        yield
        self.times.setdefault(what, []).append(time.perf_counter() - begin)

    def print(self, title: str) -> None:
        """Residuals of the last step, and times by point; the first of each warms up."""
        print(f"{title}: {len(self.residuals)} steps, {self.cuts} cut, {self.points} points")
        print("  residuals of the last:", "  ".join(f"{r:.1e}" for r in self.residuals[-1]))
        means = {what: np.mean(times[1:]) / self.points for what, times in self.times.items()}
        print("  by point:", ", ".join(f"{what} {1e6 * s:.2f} µs" for what, s in means.items()))


Assembled = tuple[np.ndarray, Any] | None
Assemble = Callable[[np.ndarray, float], Assembled]


@dataclass
class Problem:
    """Forces of a host that shall vanish where displacements are free.

    assemble: displacements and a time -> forces and their slopes, or nothing where a point failed;
    size: how many displacements there are; fixed: the numbers of prescribed ones; pulled: of those,
    which are stretched.
    """

    assemble: Assemble
    size: int
    fixed: np.ndarray
    pulled: np.ndarray
    state: State
    record: Record

    def stretch(self, most: float, *, steps: int = 16) -> np.ndarray:
        """Pull in steps, cut where a point or Newton's method fails; the displacements at last."""
        increments = Increments(np.linspace(0, 1, steps + 1).tolist(), smallest=1e-4)
        u, rate = np.zeros(self.size), np.zeros(self.size)
        for begin, end in increments:
            # displacements go on as they did: plastic stays plastic, which a tangent cannot know
            solved = self.solve(u + (end - begin) * rate, end, end * most)
            if solved is None:
                self.state.rollback()
                increments.cut()
                continue
            self.state.commit()
            rate = (solved[0] - u) / (end - begin)
            u, force = solved
            self.record.curve.append((end * most, force))
        self.record.cuts = increments.cuts
        return u

    def solve(
        self, start: np.ndarray, end: float, target: float
    ) -> tuple[np.ndarray, float] | None:
        """Newton's method from a guess: the displacements and the force, if found."""
        sizes: list[float] = []
        u, free = start.copy(), np.setdiff1d(np.arange(self.size), self.fixed)
        for iteration in range(MAX_ITERATIONS):
            assembled = self.assemble(u, end)
            if assembled is None:
                return None
            force, matrix = assembled
            if iteration:  # the first step also goes to where the edge is pulled
                sizes.append(float(np.abs(force[free]).max() / np.abs(force).max()))
                if sizes[-1] < TOLERANCE:
                    self.record.residuals.append(sizes)
                    return u, float(force[self.pulled].sum())
            change = np.zeros(self.size)
            change[self.pulled] = target - u[self.pulled]
            with self.record.measure("solve"):
                right = -(force + matrix @ change)[free]
                step: Any = spsolve(matrix[free][:, free].tocsc(), right)
            change[free] = step
            u += change
        return None


def draw(
    file: Path, points: np.ndarray, quads: np.ndarray, value: np.ndarray, label: str,
    record: Record,
) -> None:  # fmt: skip
    """A value of every element, force over stretch, and the residuals of Newton's method."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    drawn = PolyCollection(list(points[quads]), array=value, edgecolors="face", linewidths=0.3)
    left.add_collection(drawn)
    left.autoscale_view()
    left.set_aspect("equal")
    figure.colorbar(drawn, ax=left, label=label)
    middle.plot(*np.array(record.curve).T, ".-")
    middle.set_xlabel("stretch")
    middle.set_ylabel("force")
    for sizes in record.residuals:
        right.semilogy(sizes, ".-", color="C0", alpha=0.6)
    right.set_xlabel("iteration")
    right.set_ylabel("residual by the largest force")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=100)


def find_orders(residuals: list[list[float]], floor: float = 1e-13) -> list[float]:
    """Orders of convergence: how the logarithm of the residual grows, over the last iterations.

    Two is quadratic. floor: residuals below it are rounding, and tell nothing.
    """
    orders = []
    for sizes in residuals:
        useful = [r for r in sizes if r > floor]
        if len(useful) >= 3:
            a, b, c = np.log(useful[-3:])
            orders.append(float((c - b) / (b - a)))
    return orders


def show_plate(
    title: str, file: Path, record: Record, state: State, order: np.ndarray | None = None
) -> None:
    """Print a record and draw it beside the plate.

    order: the number of every element as `grade_plate` has it, where a host numbers them anew.
    """
    record.print(title)
    name = state.material.metadata.name
    value = state[DRAWN[name]].numpy()
    value = value.mean(int(value.shape[0] > value.shape[1]))  # hosts lay elements first or last
    size = round((len(value) / 2) ** 0.5)
    drawn = np.empty_like(value)
    drawn[np.arange(len(value)) if order is None else order] = value
    draw(file, *grade_plate(size), drawn, DRAWN[name].replace("_", " "), record)


def stretch_plates(
    title: str, stretch: Callable[[str, int], tuple[Any, ...]], folder: Path, size: int
) -> dict[str, Record]:
    """Stretch a plate of each material, print and draw it; the records of Newton's method.

    stretch: a material and a size -> the record, the state and, where a host numbers elements anew,
    their order
    """
    records = {}
    for name in STRETCH:
        records[name], *found = stretch(name, size)
        show_plate(
            f"{title}, {name}", folder / f"plate_{HOSTS[title]}_{name}.png", records[name], *found
        )
    return records


def find_gap(curve: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
    """How far forces are from others at the same stretches, by the largest; stretches may lack."""
    known = {round(stretch, 12): force for stretch, force in other}
    gaps = [abs(f - known[round(s, 12)]) for s, f in curve if round(s, 12) in known]
    assert len(gaps) > len(other) / 2
    return max(gaps) / max(force for _, force in curve)


def find_folder(arguments: list[str]) -> Path:
    """Where pictures go: what is named on the command line, or `examples/out`."""
    return Path(arguments[1]) if len(arguments) > 1 else HERE.parent / "out"
