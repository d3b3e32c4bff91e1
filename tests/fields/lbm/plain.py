"""Lattice Boltzmann in plain NumPy: blocks of an input, interpreted from the textbook's formulas.

A second opinion on whole runs: nothing of Ingot is used, and fields are moved by `np.roll`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Blocks = Mapping[str, Mapping[str, Any]]

AXES = {
    "D2Q9": "0 1 0 -1 0 1 -1 -1 1 / 0 0 1 0 -1 1 1 -1 -1",
    "D3Q19": "0 0 0 0 0 1 -1 0 0 0 0 1 1 -1 -1 1 1 -1 -1"
    " / 0 0 0 1 -1 0 0 1 1 -1 -1 0 0 0 0 1 -1 1 -1"
    " / 0 1 -1 0 0 0 0 1 -1 1 -1 1 -1 1 -1 0 0 0 0",
    "D3Q27": "0 1 -1 0 0 0 0 1 1 -1 -1 1 1 -1 -1 0 0 0 0 1 1 1 1 -1 -1 -1 -1"
    " / 0 0 0 1 -1 0 0 1 -1 1 -1 0 0 0 0 1 1 -1 -1 1 -1 -1 1 1 -1 -1 1"
    " / 0 0 0 0 0 1 -1 0 0 0 0 1 -1 1 -1 1 -1 1 -1 1 1 -1 -1 1 1 -1 -1",
}
WEIGHTS = {
    "D2Q9": (4 / 9, 1 / 9, 1 / 36),
    "D3Q19": (1 / 3, 1 / 18, 1 / 36),
    "D3Q27": (8 / 27, 2 / 27, 1 / 54, 1 / 216),
}
OTHER_ORDER = (
    "1 0 -1 0 0 0 1 -1 -1 1 1 0 -1 0 1 0 -1 0 1 -1 -1 1 1 -1 -1 1 0"
    " / 0 1 0 -1 0 0 1 1 -1 -1 0 1 0 -1 0 1 0 -1 1 1 -1 -1 1 1 -1 -1 0"
    " / 0 0 0 0 1 -1 0 0 0 0 1 1 1 1 -1 -1 -1 -1 1 1 1 1 -1 -1 -1 -1 0"
)
"""The directions that the reference takes the moments of D3Q27 from."""

FACES = {"left": (0, 0), "right": (0, -1), "bottom": (1, 0), "top": (1, -1), "front": (2, 0),
         "back": (2, -1)}  # fmt: skip
CS2 = 1 / 3
EVERYWHERE = ("LBMIsotropicLaplacian", "LBMComputeChemicalPotential", "LBMStackTensors")
"""What is computed in solid cells too."""


def rows_of(text: str) -> Array:
    return np.array([[int(word) for word in axis.split()] for axis in text.split("/")]).T


def moments(stencil: str, e: Array) -> tuple[Array, Array, list[int], list[int]]:
    """The rows of the moments, their rates, the rows of shear and of momentum."""
    x, y, z = (e[:, a].astype(float) if a < e.shape[1] else np.zeros(len(e)) for a in range(3))
    s, one = x * x + y * y + z * z, np.ones(len(e))
    match stencil:
        case "D2Q9":
            rows = [one, -4 + 3 * s, 4 - 21 / 2 * s + 9 / 2 * s**2, x, (3 * s - 5) * x, y,
                    (3 * s - 5) * y, x**2 - y**2, x * y]  # fmt: skip
            times, shear, momentum = [1, 1.1, 1.2, 1, 1, 1, 1, 1, 1], [7, 8], [3, 5]
        case "D3Q19":
            a, b = 3 * z**2 - s, y**2 - x**2
            rows = [one, -30 + 19 * s, (24 - 53 * s + 21 * s**2) / 2, z, (5 * s - 9) * z, y,
                    (5 * s - 9) * y, x, (5 * s - 9) * x, a, (3 * s - 5) * a, b, (3 * s - 5) * b,
                    y * z, x * y, x * z, (y**2 - x**2) * z, (x**2 - z**2) * y,
                    (z**2 - y**2) * x]  # fmt: skip
            times = [1, 1.19, 1.4, 1.4, 1, 1, 1, 1, 1, 1, 1.4, 1, 1.4, 1, 1, 1, 1.98, 1.98, 1.98]
            shear, momentum = [9, 11, 13, 14, 15], [3, 5, 7]
        case _:
            xy, yz, xz = x**2 * y**2, y**2 * z**2, x**2 * z**2
            rows = [one, x, y, z, s - 2, 2 * x**2 - y**2 - z**2, y**2 - z**2, x * y, y * z, x * z,
                    x * (3 * y**2 + 3 * z**2 - 4), y * (3 * x**2 + 3 * z**2 - 4),
                    z * (3 * x**2 + 3 * y**2 - 4), x * (4 - 6 * y**2 - 6 * z**2 + 9 * yz),
                    y * (4 - 6 * x**2 - 6 * z**2 + 9 * xz), z * (4 - 6 * x**2 - 6 * y**2 + 9 * xy),
                    4 - 4 * s + 3 * (xy + yz + xz),
                    -8 + 12 * s - 18 * (xy + yz + xz) + 27 * x**2 * y**2 * z**2,
                    2 * y**2 + 2 * z**2 - 4 * x**2 + 3 * xy + 3 * xz - 6 * yz,
                    2 * z**2 - 2 * y**2 + 3 * xy - 3 * xz, x * y * (3 * z**2 - 2),
                    y * z * (3 * x**2 - 2), x * z * (3 * y**2 - 2), x * (y**2 - z**2),
                    y * (z**2 - x**2), z * (x**2 - y**2), x * y * z]  # fmt: skip
            times = [np.inf] * 4 + [1.54, *[1] * 5, *[1.5] * 3, *[1.83] * 3, 1.4, 1.61,
                                    *[1.98] * 5, *[1.74] * 4]  # fmt: skip
            shear, momentum = [5, 6, 7, 8, 9], [1, 2, 3]
    return np.array(rows), 1 / np.array(times), shear, momentum


@dataclass
class Plain:
    """A lattice and its fields; `step` streams, answers at boundaries, and computes."""

    stencil: str
    sizes: tuple[int, ...]
    compatible: bool
    solve: Blocks
    boundary: Blocks
    streams: tuple[tuple[str, str], ...]
    fields: dict[str, Array]
    media: Array | None = None
    links: dict[str, Array] = field(default_factory=dict)
    noise: np.random.Generator | None = None
    """What moves every number that is written by a unit in its last place, or not."""

    def __post_init__(self) -> None:
        self.e = rows_of(AXES[self.stencil])
        self.dim, self.q = self.e.shape[1], len(self.e)
        self.w = np.array([WEIGHTS[self.stencil][np.abs(way).sum()] for way in self.e])
        self.back = [int(np.flatnonzero((self.e == -way).all(1))[0]) for way in self.e]
        self.solid = np.zeros(self.sizes, bool)
        if self.media is not None and self.media.sum() > 0:
            self.solid = self.media == 0
        self.fields = {name: self.moved(value) for name, value in self.fields.items()}

    def step(self) -> None:
        """One step of the lattice."""
        old = {name: value.copy() for name, value in self.fields.items()}
        for to, source in self.streams:
            moved = np.empty_like(old[source])
            for i, way in enumerate(self.e):
                moved[..., i] = np.roll(old[source][..., i], way, tuple(range(self.dim)))
            self.fields[to] = self.cleared(moved)
        for name, block in self.boundary.items():
            self.fields[block["buffer"]] = self.cleared(self.answer(name, block, old))
        with np.errstate(divide="ignore", invalid="ignore"):
            for block in self.solve.values():
                found = self.compute(block)
                everywhere = block["type"] in EVERYWHERE
                found = self.moved(found) if everywhere else self.cleared(found)
                self.fields[block["buffer"]] = found

    def cleared(self, value: Array) -> Array:
        value = self.moved(value)
        value[self.solid] = 0
        return value

    def moved(self, value: Array) -> Array:
        """A copy of a field, as another way of rounding might have left it."""
        if self.noise is None or value.dtype != np.float64:
            return value.copy()
        return value * (1 + np.finfo(float).eps * self.noise.integers(-1, 2, value.shape))

    def look(self, block: Mapping[str, Any], key: str, default: str = "") -> Array:
        return self.fields[block.get(key, default)]

    def equilibrium(self, bulk: Array, u: Array) -> Array:
        along = u @ self.e.T
        square = (u * u).sum(-1)[..., None]
        terms = 1 + along / CS2 + along**2 / (2 * CS2**2) - square / (2 * CS2)
        return self.w * bulk[..., None] * terms

    def answer(self, name: str, block: Mapping[str, Any], old: dict[str, Array]) -> Array:
        """A distribution after one boundary condition."""
        f, place, kind = self.fields[block["buffer"]].copy(), block["boundary"], block["type"]
        if place in FACES:
            axis, at = FACES[place]
            layer = tuple(at if a == axis else slice(None) for a in range(self.dim))
            inward = 1 if at == 0 else -1
            entering = np.flatnonzero(self.e[:, axis] == inward)
        else:
            axis, at, layer, inward, entering = -1, 0, (), 0, np.array([])
        match kind:
            case "LBMBounceBack" if place == "wall":
                if name not in self.links:
                    self.links[name] = self.wall_cells()[..., None] & self.linked(f)
                for i in range(1, self.q):
                    mask = self.links[name][..., i]
                    f[mask, i] = old[block["f_old"]][mask, self.back[i]]
            case "LBMBounceBack":
                kept = [block.get(f"exclude_corners_{a}") == "true" for a in "xyz"]
                inner = tuple(
                    at if a == axis else slice(1, -1) if kept[a] else slice(None)
                    for a in range(self.dim)
                )
                for d in entering:
                    f[(*inner, d)] = old[block["f_old"]][(*inner, self.back[d])]
            case "LBMMicroscopicZeroGradientBC":
                beside = tuple(at + inward if a == axis else slice(None) for a in range(self.dim))
                f[layer] = f[beside]
            case "LBMDirichletBC" | "LBMNeumannBC":
                former, feq, u = old[block["f_old"]], self.look(block, "feq"), self.look(
                    block, "velocity"
                )  # fmt: skip
                if kind == "LBMDirichletBC":
                    bulk, ways = np.full(self.sizes, float(block["value"])), np.arange(self.q)
                else:
                    bulk = self.look(block, "rho") + float(block["gradient"])
                    ways = entering
                fixed = self.equilibrium(bulk, u) + former - feq
                if place in FACES:
                    for d in ways:
                        f[(*layer, d)] = fixed[(*layer, d)]
                else:
                    wall = place == "wall"
                    assert self.media is not None
                    cells = self.wall_cells() if wall else self.media == block["region_id"]
                    f[cells] = fixed[cells]
            case _:
                f = self.through(block, f, axis, layer, inward, entering)
        return f

    def through(
        self, block: Mapping[str, Any], f: Array, axis: int, layer: tuple[Any, ...], inward: int,
        entering: Array,
    ) -> Array:  # fmt: skip
        """A distribution with a fixed speed or density at a face: Zou and He, in 3D simplified."""
        now = self.look(block, "f")[layer]
        neutral = np.flatnonzero(self.e[:, axis] == 0)
        if self.compatible and self.dim == 3:
            neutral = -neutral % self.q
        total = now[..., neutral].sum(-1) + 2 * sum(now[..., self.back[d]] for d in entering)
        value = float(block["value"])
        if block["type"] == "LBMFixedZerothOrderBC":
            rho = value
            v = inward * (1 - total / value)
        else:
            v = np.full(now.shape[:-1], value)
            if block.get("perturb") == "true" and block["boundary"] == "left" and self.dim == 2:
                ny = self.sizes[1]
                v = value + 1e-6 * value * np.sin(2 * np.pi * np.arange(ny) / ny)
            rho = total / (1 - inward * v)
        for d in entering:
            came = now[..., self.back[d]]
            if self.dim == 3:
                f[(*layer, d)] = came + inward * 2 * self.w[d] / CS2 * v * rho
                continue
            tangent = 1 - axis
            t = self.e[d][tangent]
            if t == 0:
                f[(*layer, d)] = came + inward * 2 / 3 * rho * v
            else:
                plus, minus = (
                    now[..., np.flatnonzero((self.e[:, axis] == 0) & (self.e[:, tangent] == s))[0]]
                    for s in (1, -1)
                )
                f[(*layer, d)] = came - t * (plus - minus) / 2 + inward * rho * v / 6
        return f

    def wall_cells(self) -> Array:
        assert self.media is not None
        beside = np.zeros(self.sizes, bool)
        for way in self.e[1:]:
            beside |= np.roll(self.media == 0, way, tuple(range(self.dim)))
        return (self.media >= 1) & beside

    def linked(self, f: Array) -> Array:
        """The directions that come out of solid cells: in the reference, those with nothing."""
        if self.compatible:
            return f == 0
        assert self.media is not None
        moved = [np.roll(self.media == 0, way, tuple(range(self.dim))) for way in self.e]
        return np.stack(moved, -1)

    def compute(self, block: Mapping[str, Any]) -> Array:
        """What one block of [Solve] writes."""
        computes: dict[str, Callable[[Mapping[str, Any]], Array]] = {
            "LBMComputeDensity": lambda b: self.look(b, "f").sum(-1),
            "LBMComputeVelocity": self.velocity,
            "LBMComputeVelocityMagnitude": lambda b: np.linalg.norm(
                self.look(b, "velocity"), axis=-1
            ),
            "LBMEquilibrium": lambda b: self.equilibrium(
                self.look(b, "bulk"), self.look(b, "velocity")
            ),
            "LBMComputeForces": self.forces,
            "LBMApplyForces": self.push,
            "LBMIsotropicGradient": lambda b: np.stack(
                [self.weighed(self.look(b, "scalar_field"), self.e[:, a] / CS2)
                 for a in range(self.dim)], -1
            ),
            "LBMIsotropicLaplacian": lambda b: 2 / CS2 * (
                self.weighed(self.look(b, "scalar_field"), np.ones(self.q))
                - self.look(b, "scalar_field")
            ),
            "LBMComputeChemicalPotential": self.potential,
            "LBMComputeSurfaceForces": lambda b: (
                self.look(b, "chemical_potential")[..., None] * self.look(b, "grad_phi")
            ),
            "LBMPhaseEquilibrium": self.phase,
            "LBMStackTensors": lambda b: np.stack(
                [self.fields[each] for each in b["inputs"].split()], -1
            ),
        }  # fmt: skip
        return computes.get(block["type"], self.collide)(block)

    def velocity(self, block: Mapping[str, Any]) -> Array:
        rho = self.look(block, "rho")[..., None]
        u = self.look(block, "f") @ self.e / rho
        if block.get("enable_forces") == "true":
            u = u + self.look(block, "forces", "forces") / (2 * rho)
        if block.get("add_body_force") == "true":
            body = [float(block.get(f"body_force_{a}", 0)) for a in "xyz"[: self.dim]]
            u = u + np.array(body) / (2 * rho)
        return u

    def collide(self, block: Mapping[str, Any]) -> Array:
        f, feq, tau0 = self.look(block, "f"), self.look(block, "feq"), float(block["tau0"])
        rest, tau = f - feq, np.full(self.sizes, tau0)
        if block.get("projection") == "true":
            wide = np.zeros((self.q, 3))
            wide[:, : self.dim] = self.e
            stress = np.einsum("...i,ia,ib->...ab", rest, wide, wide)
            tensor = np.einsum("ia,ib->iab", wide, wide) / CS2 - np.eye(3)
            rest = self.w / (2 * CS2) * np.einsum("...ab,iab->...i", stress, tensor)
        if "Smagorinsky" in block["type"]:
            tau = self.eddies(f, rest, tau0, float(block.get("Cs", 0.1)))
        if "MRT" not in block["type"]:
            return feq + rest - rest / tau[..., None]
        other = self.compatible and self.stencil == "D3Q27"
        m, rates, shear, momentum = moments(self.stencil, rows_of(OTHER_ORDER) if other else self.e)
        rates = np.broadcast_to(rates, (*self.sizes, self.q)).copy()
        for row in shear if self.compatible else [*shear, *momentum]:
            rates[..., row] = 1 / tau
        relaxed = np.einsum("ij,...j->...i", m, rest) * rates
        return feq + rest - np.einsum("ij,...j->...i", np.linalg.inv(m), relaxed)

    def eddies(self, f: Array, rest: Array, tau0: float, strength: float) -> Array:
        if self.compatible:
            size = np.abs((rest * np.prod(self.e, axis=1)).sum(-1))
            mean = np.full(self.sizes, f.sum(-1).mean())
        else:
            stress = np.einsum("...i,ia,ib->...ab", rest, self.e, self.e)
            size, mean = np.sqrt((stress**2).sum((-1, -2)) / 2), f.sum(-1)
        if strength == 0:
            return tau0 + 0 * size / mean  # the root below has no limit there, but this has
        scale = np.sqrt(strength) / np.sqrt(CS2)
        eta, flux = tau0 / scale, size / np.where(mean == 0, 1, mean) / CS2
        rate = (-eta + np.sqrt(eta**2 + 4 * flux)) / (2 * scale)
        return tau0 + strength * rate / CS2

    def forces(self, block: Mapping[str, Any]) -> Array:
        force = np.zeros((*self.sizes, self.dim))
        gravity, axis = float(block.get("gravity", 0.001)), int(block.get("gravity_direction", 1))
        if block.get("enable_gravity") == "true":
            force[..., axis] += gravity * self.look(block, "rho", "rho")
        if block.get("enable_buoyancy") == "true":
            warmer = self.look(block, "temperature", "T") - float(block.get("T0", 1))
            force[..., axis] += gravity * float(block.get("rho0", 1)) * warmer
        return force

    def push(self, block: Mapping[str, Any]) -> Array:
        force, tau = self.look(block, "forces"), float(block["tau0"])
        along = force @ self.e.T / CS2
        if self.compatible:
            source = self.w * self.look(block, "rho")[..., None] * along
        else:
            if "velocity" in block:  # Guo's source to second order
                u = self.look(block, "velocity")
                turned = (u @ self.e.T) * (force @ self.e.T) / CS2**2
                along = along + turned - (u * force).sum(-1)[..., None] / CS2
            source = self.w * along
        return self.look(block, "buffer") + (1 - 1 / (2 * tau)) * source

    def weighed(self, phi: Array, factors: Array) -> Array:
        """The sum of a field at the ends of directions, weighed."""
        total = np.zeros(self.sizes)
        if not self.compatible:
            for w, factor, way in zip(self.w, factors, self.e, strict=True):
                total += w * factor * np.roll(phi, -way, tuple(range(self.dim)))
            return total
        # a kernel of three rows along the first axis: 6 2 5, 3 0 1, 7 4 8; edges are repeated
        padded = np.pad(phi, 1, mode="edge")
        for a, row in enumerate(((6, 2, 5), (3, 0, 1), (7, 4, 8))):
            for b, i in enumerate(row):
                piece = padded[a : a + self.sizes[0], b : b + self.sizes[1]]
                total += self.w[i] * factors[i] * piece
        return total

    def potential(self, block: Mapping[str, Any]) -> Array:
        phi, lap = self.look(block, "phi"), self.look(block, "laplacian_phi")
        width, sigma = float(block["thickness"]), float(block["sigma"])
        if self.compatible:
            return sigma / width * phi * (phi - 1) - width * sigma * lap
        slope = 2 * phi * (phi - 1) * (2 * phi - 1)  # of phi^2 (1 - phi)^2
        return 12 * sigma / width * slope - 1.5 * sigma * width * lap

    def phase(self, block: Mapping[str, Any]) -> Array:
        phi, grad = self.look(block, "phi"), self.look(block, "grad_phi")
        found = self.w * phi[..., None]
        if self.compatible:
            return found
        length = np.linalg.norm(grad, axis=-1)
        normal = grad / np.where(length < 1e-12, np.inf, length)[..., None]
        tau, width = float(block["tau_phi"]), float(block["thickness"])
        strength = (tau - 0.5) * 4 * phi * (1 - phi) / width
        return found + self.w * strength[..., None] * (normal @ self.e.T)
