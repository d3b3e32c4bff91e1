r"""The logarithm of a symmetric 3x3 tensor and its derivatives of any order, `log1p3`.

Derivatives are written by divided differences (Daleckii and Krein), never by those of directions:
values and slopes are right where principal values are equal, nearly so, or apart.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from ingot.types.algebra import MANDEL, add_up, r2_from_sr2, transpose
from ingot.types.kinds import R2, SR2
from ingot.types.spectral import Eigen, eigh3
from ingot.types.value import Scalar, apply, atoms_of, on_atoms, padded, where

__all__ = ["differentiate_log1p", "log1p3"]

NEAR = 0.4  # the ratio of principal values, less one, up to which differences of logs would cancel
NODES = (
    (0.019855071751231884, 0.05061426814518813),
    (0.10166676129318663, 0.11119051722668724),
    (0.23723379504183551, 0.15685332293894364),
    (0.4082826787521751, 0.18134189168918099),
    (0.5917173212478249, 0.18134189168918099),
    (0.76276620495816449, 0.15685332293894364),
    (0.89833323870681337, 0.11119051722668724),
    (0.98014492824876812, 0.05061426814518813),
)
"""Points and weights of Gauss and Legendre on [0, 1]; off by 12^-16 for ratios up to `NEAR`."""


def log1p3(a: SR2, *along: SR2) -> SR2:
    r"""$\ln(I + A)$, or its derivative along as many directions as are given, $D^k \ln(I + A)$.

    A derivative is symmetric in its directions, and so is its product with a further one. $I + A$
    is positive definite; elsewhere the result is NaN. What is lost to the unit is not lost again:
    digits of a small $A$ are those of the result.
    """
    if on_atoms(a, *along) is not None:
        return differentiate_log1p(a, eigh3(a), along)
    sub = max(x.sub for x in (a, *along))
    tensors = torch.broadcast_tensors(*(padded(x, sub) for x in (a, *along)))
    return SR2(cast(Tensor, _Log1p.apply(*tensors)), sub_batch_ndim=sub)


def differentiate_log1p(a: SR2, frame: Eigen, along: Sequence[SR2]) -> SR2:
    """The lines of a derivative, told to be that: those of `frame` are never differentiated."""
    result = _write_derivative(frame, along)
    atom = on_atoms(a, frame.eigenvalues, *along)
    assert atom is not None, "on tensors autograd is told"
    held = [x for v in (*frame, a, *along) for x in atoms_of(atom, v)]
    lines = atoms_of(atom, result)
    return SR2(tuple(atom.emit("log1p3", x, *held, component=i) for i, x in enumerate(lines)))


def _write_derivative(frame: Eigen, along: Sequence[SR2]) -> SR2:
    r"""$\sum f[\lambda_i, \dots, \lambda_j] B_{ik} \cdots C_{lj}$ in the frame, over all orders."""
    d, v = frame
    turned = [transpose(v) @ r2_from_sr2(b) @ v for b in along]
    table = _Differences([d[i] for i in range(3)])
    entries: dict[tuple[int, int], Any] = {}
    for i, j in itertools.combinations_with_replacement(range(3), 2):
        terms = [
            table.at((i, *path, j))
            * math.prod((b[p] for b, p in zip(order, _steps(i, path, j), strict=True)), start=1.0)
            for path in itertools.product(range(3), repeat=len(along) - 1)
            for order in itertools.permutations(turned)
        ] if along else [table.at((i,)) if i == j else 0.0]  # fmt: skip
        entries[i, j] = entries[j, i] = add_up(terms)
    if not along:
        half = R2.of(*(v[i, k] * entries[k, k] for i in range(3) for k in range(3)))
    else:
        half = v @ R2.of(*(entries[i, j] for i in range(3) for j in range(3)))
    return SR2.of(
        *(add_up([half[i, k] * v[j, k] for k in range(3)]) * scale for i, j, scale in MANDEL)
    )


def _steps(first: int, path: Sequence[int], last: int) -> list[tuple[int, int]]:
    return list(itertools.pairwise((first, *path, last)))


class _Differences:
    r"""Divided differences of $\ln(1 + d)$ at three ascending numbers, each as often as asked."""

    def __init__(self, numbers: Sequence[Scalar]) -> None:
        self.numbers = numbers
        self.known: dict[tuple[int, ...], Any] = {}
        self.fractions: dict[tuple[int, int], list[Any]] = {}

    def at(self, indices: Sequence[int]) -> Any:
        """The difference at numbers given by their places, in any order."""
        key = tuple(sorted(indices))
        if key not in self.known:
            self.known[key] = self._find(key)
        return self.known[key]

    def _find(self, key: tuple[int, ...]) -> Any:
        low, high, order = key[0], key[-1], len(key) - 1
        base = self.numbers[low] + 1.0
        if order == 0:
            return apply("log1p", self.numbers[low])
        if low == high:
            return (-1.0) ** (order - 1) / order / base**order
        gap = self.numbers[high] - self.numbers[low]
        ratio = gap / base
        if order == 1:
            equal = ratio <= 0.0
            safe = where(equal, 1.0, ratio)
            return where(equal, 1.0, apply("log1p", safe) / safe) / base
        near = ratio <= NEAR
        apart = (self.at(key[1:]) - self.at(key[:-1])) / where(near, 1.0, gap)
        close = self._integrate(key) * ((-1.0) ** (order - 1)) / base**order
        return where(near, close, apart)

    def _integrate(self, key: tuple[int, ...]) -> Any:
        r"""$\int_0^1 t^{k-1} \prod 1 / (1 + t x_i) dt$, $x_i$ the ratios to the least, less one.

        No term is negative, so that nothing cancels.
        """
        low, order = key[0], len(key) - 1
        terms = []
        for n, (t, weight) in enumerate(NODES):
            factors = [self._fractions(low, i)[n] for i in key if i != low]
            terms.append(math.prod(factors, start=1.0) * (weight * t ** (order - 1)))
        return add_up(terms)

    def _fractions(self, low: int, high: int) -> list[Any]:
        if (low, high) not in self.fractions:
            ratio = (self.numbers[high] - self.numbers[low]) / (self.numbers[low] + 1.0)
            self.fractions[low, high] = [1.0 / (1.0 + ratio * t) for t, _ in NODES]
        return self.fractions[low, high]


class _Log1p(torch.autograd.Function):
    """The same on tensors of components, with its derivatives for autograd and `torch.func`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, *along: Tensor) -> Tensor:
        """The derivative along all directions."""
        return _write_derivative(eigh3(SR2(a)), [SR2(b) for b in along]).data

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        """All operands are kept."""
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        """One direction more for the tensor; the others are linear."""
        operands = ctx.saved_tensors
        terms = [_Log1p.apply(*operands, tangents[0])] if tangents[0] is not None else []
        for k, tangent in enumerate(tangents[1:], 1):
            if tangent is not None:
                terms.append(_Log1p.apply(*operands[:k], tangent, *operands[k + 1 :]))
        return cast(Tensor, add_up(terms))

    @staticmethod
    def backward(ctx: Any, *bars: Any) -> Any:
        """As forward: a derivative is symmetric in its directions and the one it is read along."""
        operands, (bar,) = ctx.saved_tensors, bars
        others = [
            _Log1p.apply(*operands[:k], *operands[k + 1 :], bar) for k in range(1, len(operands))
        ]
        return (_Log1p.apply(*operands, bar), *others)
