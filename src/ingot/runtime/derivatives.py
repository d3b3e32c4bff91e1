"""Derivatives of a package: its blocks and adjoints, their products, points that failed in them."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from ingot.execute.batch_shape import ValueShape, join_batches
from ingot.execute.status import Status, may_be, spoil_rows
from ingot.graphs.calls import Layouts
from ingot.messages import refuse
from ingot.package.metadata import Metadata
from ingot.runtime.backends import Backend
from ingot.runtime.call_checks import CallChecks
from ingot.runtime.last_status import LastStatus

__all__ = ["Derivatives", "sum_to"]

Pair = tuple[str, str]
Slopes = dict[Pair, Tensor]


class Derivatives:
    """What a package differentiates, of values that were checked.

    last: keeps what the solves of this thread's last call reported.
    """

    def __init__(
        self, meta: Metadata, backend: Backend, checks: CallChecks, last: LastStatus
    ) -> None:
        self.meta, self.backend, self.last = meta, backend, last
        self.pairs = [(b.output, b.input) for b in meta.derivatives]
        self.given, self.outputs, self.lives = checks.given, checks.outputs, checks.lives

    def require(self, *, backwards: bool = False) -> None:
        """Refuse where there is none of what is asked for."""
        if self.pairs or (backwards and self.backend.has_adjoints):
            return
        what = "derivative pairs" if self.backend.has_adjoints else "derivatives"
        some, every = (self.meta.origin.spell("derivative", pair) for pair in ("OUT:IN", ":"))
        fix = f"compile with {some}, or {every} for all pairs"
        fix += self.spell_train(" for all gradients") if backwards else ""
        raise refuse("no derivatives", what=what, fix=fix)

    def spell_train(self, what: str = "") -> str:
        """The other remedy where a gradient is missing: graphs have none, but the kernel may."""
        if self.meta.adjoints:
            return "; or load the package with backend='kernel', which has adjoints"
        return f", or with {self.meta.origin.spell('train')}{what}"

    def select_complete(
        self, names: Iterable[str], needs: Callable[[str], list[Pair]], remedy: str = ""
    ) -> list[str]:
        """The names for which every pair that they need was compiled; there must be one."""
        missing = {n: [p for p in needs(n) if p not in self.pairs] for n in names}
        whole = [n for n, pairs in missing.items() if not pairs]
        if not whole and missing:
            y, x = next(iter(missing.values()))[0]
            spelled = self.meta.origin.spell("derivative", f"{y}:{x}")
            raise refuse("no pair", output=y, input=x, spelled=spelled, remedy=remedy)
        return whole

    def evaluate(
        self, values: Sequence[Tensor], key: Layouts, by: Collection[str], *, spread: bool = True
    ) -> tuple[dict[str, Tensor], Slopes, Tensor | None]:
        """The outputs and blocks; where an output is NaN at a point that failed, so are its blocks.

        Also the points that failed, if any. by: what is differentiated by; spread: whether a block
        that is the same for all points then has a batch, to be NaN in.
        """
        self.require()
        outputs, blocks, told = self.backend.slopes(values, key, by)
        failed = self._find_failed(told, values, outputs, self.outputs)
        if failed is not None:
            for b in self.meta.derivatives:
                pair = b.output, b.input
                if pair in blocks and (spread or not b.batch_independent):
                    shapes = self.outputs[b.output], self.given[b.input]
                    blocks[pair] = spoil_rows(blocks[pair], outputs[b.output], failed, *shapes)
        return outputs, blocks, failed

    def pull(self, values: Sequence[Tensor], cotangents: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The adjoints of all values at every point."""
        outputs, pulled, told = self.backend.pull(values, cotangents)
        failed = self._find_failed(told, values, pulled, self.given)
        if failed is None:
            return pulled
        lost = {y: outputs[y].isnan() & (bar != 0) for y, bar in cotangents.items()}
        pulled = self._fill(pulled, failed & self._mark(lost, failed), math.nan)
        return self.silence(pulled, cotangents, failed)

    def push_blocks(self, blocks: Slopes, tangents: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The change of the outputs that have a block with every tangent."""
        whole = self.select_complete(self.outputs, lambda y: [(y, x) for x in tangents])
        found: dict[str, Tensor] = {}
        for x, tangent in tangents.items():
            for y in whole:
                term = _multiply(blocks[y, x], tangent, self.outputs[y], self.given[x])
                found[y] = found[y] + term if y in found else term
        return found

    def pull_blocks(
        self, blocks: Slopes, cotangents: Mapping[str, Tensor], by: Sequence[str]
    ) -> dict[str, Tensor]:
        """The adjoints of those values that have a block with every cotangent."""
        whole = self.select_complete(by, lambda x: [(y, x) for y in cotangents], self.spell_train())
        found: dict[str, Tensor] = {}
        for y, value in cotangents.items():
            for x in whole:
                shapes = self.outputs[y], self.given[x]
                term = _multiply(blocks[y, x], value, *shapes, turned=True)
                found[x] = found[x] + term if x in found else term
        return found

    def spread(
        self, found: dict[str, Tensor], known: Mapping[str, ValueShape],
        outputs: Mapping[str, Tensor], batch: tuple[int, ...],
    ) -> dict[str, Tensor]:  # fmt: skip
        """Products at every point of the call, those with blocks that are the same for all too.

        Outputs have the batch of constants too; those that are sums, one of their own.
        """
        if self.backend.sums:
            return found
        ranks = {y: s.rank for y, s in self.outputs.items()}
        batch = join_batches(
            [batch, *(tuple(x.shape[: x.ndim - ranks[y]]) for y, x in outputs.items())]
        )
        whole = {n: (*batch, *known[n].sizes, *known[n].base) for n in found}
        return {
            n: x if x.shape == whole[n] else x.expand(whole[n]).clone() for n, x in found.items()
        }

    def silence(
        self, pulled: dict[str, Tensor], cotangents: Mapping[str, Tensor], failed: Tensor | None
    ) -> dict[str, Tensor]:
        """Adjoints that are zero at points that failed and whose cotangents are all zero.

        Such a point has NaN slopes, which a sum over points would spread to all; whoever leaves it
        out of a function, so that its cotangents are zero, means the gradient of the rest.
        """
        if failed is None:
            return pulled
        heard = self._mark({y: bar != 0 for y, bar in cotangents.items()}, failed)
        return self._fill(pulled, failed & ~heard, 0.0)

    def _find_failed(
        self, told: Sequence[Status], values: Sequence[Tensor], results: Mapping[str, Tensor],
        shapes: Mapping[str, ValueShape],
    ) -> Tensor | None:  # fmt: skip
        """Tell of the solves; which points of the batch failed, if any; a result has all points."""
        if not self.last.tell(told, values):
            return None
        batch = max((x.shape[: x.ndim - shapes[n].rank] for n, x in results.items()), key=len)
        return torch.stack([~s.converged for s in told]).any(0).reshape(batch)

    def _mark(self, marks: Mapping[str, Tensor], like: Tensor) -> Tensor:
        """The points at which a component of any output is marked."""
        found = torch.zeros_like(like)
        for y, mark in marks.items():
            rank = self.outputs[y].rank
            if y in self.backend.sums:
                found = found | mark.any()
                continue
            found = found | mark.reshape(*mark.shape[: mark.ndim - rank], -1).any(-1)
        return found

    def _fill(self, pulled: dict[str, Tensor], points: Tensor, number: float) -> dict[str, Tensor]:
        if not may_be(points):
            return pulled
        ranks = {n: s.rank for n, s in self.given.items()}
        return {
            n: torch.where(points.reshape((*points.shape, *(1,) * ranks[n])), number, x)
            for n, x in pulled.items()
        }


def _multiply(
    block: Tensor, other: Tensor, out: ValueShape, into: ValueShape, *, turned: bool = False
) -> Tensor:
    """A block times a tangent of its input, or, turned, times a cotangent of its output."""
    left, right = len(out.sizes), len(into.sizes)
    rank = left + right + len(out.base) + len(into.base)
    batch = block.ndim - rank
    # (*batch, *out sizes, *in sizes, *out base, *in base) -> (*batch, out, in)
    first = [*range(batch), *range(batch, batch + left),
             *range(batch + left + right, batch + left + right + len(out.base))]  # fmt: skip
    rest = [i for i in range(block.ndim) if i not in first]
    matrix = block.permute((*first, *rest)).reshape(*block.shape[:batch], out.width, into.width)
    side = out if turned else into
    vector = other.reshape(*other.shape[: other.ndim - side.rank], side.width, 1)
    matrix = matrix.mT if turned else matrix
    # torch sums a product that is by itself in another order than those of a batch
    is_alone = vector.ndim == 2
    result = (matrix[None] @ vector[None])[0] if is_alone else matrix @ vector
    to = into if turned else out
    return result[..., 0].reshape((*result.shape[:-2], *to.sizes, *to.base))


def sum_to(x: Tensor, shape: torch.Size) -> Tensor:
    """The sum over points that share a value of that shape."""
    return x.sum_to_size(shape) if x.shape != shape else x
