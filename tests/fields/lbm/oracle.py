"""Lattice Boltzmann in plain NumPy, cell by cell where it matters: what Ingot is compared with."""

import itertools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WEIGHTS = {
    "D2Q9": {0: 4 / 9, 1: 1 / 9, 2: 1 / 36},
    "D3Q19": {0: 1 / 3, 1: 1 / 18, 2: 1 / 36},
    "D3Q27": {0: 8 / 27, 1: 2 / 27, 2: 1 / 54, 3: 1 / 216},
}
FACES = {
    "left": (0, 1), "right": (0, -1), "bottom": (1, 1), "top": (1, -1), "front": (2, 1),
    "back": (2, -1),
}  # fmt: skip


def weight(stencil: str, e: tuple[int, ...]) -> float:
    return WEIGHTS[stencil][sum(map(abs, e))]


def equilibrium(stencil: str, e: Array, rho: Array, u: Array) -> Array:
    out = np.empty((*rho.shape, len(e)))
    for cell in np.ndindex(*rho.shape):
        for i, way in enumerate(e):
            along = float(way @ u[cell])
            terms = 1 + 3 * along + 4.5 * along**2 - 1.5 * float(u[cell] @ u[cell])
            out[(*cell, i)] = weight(stencil, tuple(way)) * rho[cell] * terms
    return out


def stream(e: Array, f: Array) -> Array:
    out, sizes = np.empty_like(f), f.shape[:-1]
    for cell in np.ndindex(*sizes):
        for i, way in enumerate(e):
            to = tuple((c + int(s)) % n for c, s, n in zip(cell, way, sizes, strict=True))
            out[(*to, i)] = f[(*cell, i)]
    return out


def opposite(e: Array, i: int) -> int:
    return int(np.flatnonzero((e == -e[i]).all(1))[0])


def face_cells(sizes: tuple[int, ...], face: str) -> list[tuple[int, ...]]:
    axis, inward = FACES[face]
    at = 0 if inward > 0 else sizes[axis] - 1
    return [c for c in itertools.product(*map(range, sizes)) if c[axis] == at]


def bounce_back(e: Array, f: Array, old: Array, face: str) -> Array:
    axis, inward = FACES[face]
    out = f.copy()
    for cell in face_cells(f.shape[:-1], face):
        for i in range(len(e)):
            if e[i][axis] == inward:
                out[(*cell, i)] = old[(*cell, opposite(e, i))]
    return out


def zero_gradient(f: Array, face: str) -> Array:
    axis, inward = FACES[face]
    out = f.copy()
    for cell in face_cells(f.shape[:-1], face):
        beside = list(cell)
        beside[axis] += inward
        out[cell] = f[tuple(beside)]
    return out


def fixed(
    stencil: str, e: Array, f: Array, face: str, *, speed: float | None, rho: float | None
) -> Array:
    """Zou and He in two dimensions; in three the departure bounces back along each direction."""
    axis, inward = FACES[face]
    out = f.copy()
    for cell in face_cells(f.shape[:-1], face):
        now = f[cell]
        total = sum(now[i] * (1 if e[i][axis] == 0 else 2) for i in range(len(e))
                    if e[i][axis] != inward)  # fmt: skip
        if speed is not None:
            momentum = total / (1 - inward * speed) * speed
        else:
            assert rho is not None
            momentum = inward * (rho - total)
        for i in range(len(e)):
            if e[i][axis] != inward:
                continue
            back = now[opposite(e, i)]
            if len(e[i]) == 2:
                tangent = 1 - axis
                if e[i][tangent] == 0:
                    back += inward * 2 / 3 * momentum
                else:
                    ahead, behind = (
                        now[next(k for k in range(9) if e[k][axis] == 0 and e[k][tangent] == s)]
                        for s in (1, -1)
                    )
                    back += -0.5 * e[i][tangent] * (ahead - behind) + inward * momentum / 6
            else:
                back += inward * 6 * weight(stencil, tuple(e[i])) * momentum
            out[(*cell, i)] = back
    return out


def projected(stencil: str, e: Array, rest: Array) -> Array:
    """The part of a departure that is a stress; three axes always."""
    wide = np.zeros((len(e), 3))
    wide[:, : e.shape[1]] = e
    stress = np.einsum("...i,ia,ib->...ab", rest, wide, wide)
    tensor = 3 * np.einsum("ia,ib->iab", wide, wide) - np.eye(3)
    weights = np.array([weight(stencil, tuple(way)) for way in e])
    return 1.5 * weights * np.einsum("...ab,iab->...i", stress, tensor)
