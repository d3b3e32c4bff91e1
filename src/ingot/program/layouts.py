"""Which axes each value of a file has; unnamed ones take their names from laws that read them."""

from collections.abc import Mapping, Sequence

from ingot.errors import IngotError, Problem
from ingot.model import lag
from ingot.program.builder import Axis

__all__ = ["Layout", "Layouts", "Restart", "parse_axis"]

Layout = tuple[Axis, ...]


class Restart(Exception):
    """An unnamed axis was named; the trace starts again and knows it from the beginning."""


def parse_axis(text: str) -> Axis:
    """An axis as a kind writes it: `slip`, `cell+1`, `cell-1`; `*knot` is one of any name."""
    for sign in "+-":
        name, found, steps = text.partition(sign)
        if found:
            return Axis(name, int(sign + steps))
    return Axis(text)


class Layouts:
    """Names and extents of axes, learned while tracing; unnamed ones start with `?`."""

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in shapes.items():
            base, _ = lag(name)
            if shape and self.shapes.setdefault(base, tuple(shape)) != tuple(shape):
                raise _refuse(
                    "shapes-differ",
                    f"'{name}' has structural shape {tuple(shape)},"
                    f" but {self.shapes[base]} elsewhere",
                )
        self.names: dict[str, Axis] = {}
        self.extents: dict[str, int] = {}

    def of(self, name: str, shape: Sequence[int] | None = None) -> Layout:
        """The layout of a variable or parameter, by its name and structural shape."""
        base, _ = lag(name)
        sizes = self.shapes.get(base, ()) if shape is None else tuple(shape)
        found = []
        for i, size in enumerate(sizes):
            unnamed = f"?{base}.{len(sizes) - i}"
            if unnamed not in self.names:
                self.extents[unnamed] = size
            found.append(self.resolve(Axis(unnamed)))
        return tuple(found)

    def resolve(self, axis: Axis) -> Axis:
        """The axis under the name it has been given by now."""
        while axis.name in self.names:
            to = self.names[axis.name]
            axis = Axis(to.name, to.offset + axis.offset)
        return axis

    def extent(self, axis: Axis) -> int:
        """The number of entries along an axis."""
        return self.extents[axis.name] + axis.offset

    def know(self, name: str, extent: int, who: str) -> None:
        """Record an extent, or refuse one that differs from what is known."""
        if self.extents.setdefault(name, extent) != extent:
            raise _refuse(
                "extents-differ",
                f"{who} has {extent} entries along '{name}', which has {self.extents[name]}",
            )

    def unify(self, a: Axis, b: Axis, who: str) -> None:
        """Make two axes that meet one; an unnamed one takes the other's name."""
        if a == b:
            return
        if not a.name.startswith("?"):
            a, b = b, a
        if not a.name.startswith("?"):
            raise _refuse(
                "axes-differ", f"the axes '{a}' and '{b}' meet in {who}",
                "rename an input so that values of one axis meet values of the same",
            )  # fmt: skip
        if self.extent(a) != self.extent(b):
            raise _refuse(
                "extents-differ",
                f"{_quote(a)} with {self.extent(a)} entries meets {_quote(b)} with {self.extent(b)}"
                f" in {who}",
            )
        self.names[a.name] = Axis(b.name, b.offset - a.offset)
        raise Restart

    def name(self, unnamed: Axis, axis: Axis) -> None:
        """Give an unnamed axis its name; the caller restarts."""
        self.names[unnamed.name] = Axis(axis.name, axis.offset - unnamed.offset)

    def sources(self, axis: Axis) -> str:
        """The variables whose unnamed axes took this name."""
        took = [n for n in self.names if self.resolve(Axis(n)).name == axis.name]
        return ", ".join(f"'{n[1:].rpartition('.')[0]}'" for n in took) or "an argument"

    def name_rest(self) -> bool:
        """Name what no law named, `axis1, axis2, ...` leftwards; whether there was anything."""
        left = [n for n in self.extents if n.startswith("?") and n not in self.names]
        for unnamed in left:
            place = int(unnamed.rpartition(".")[2])
            while self.extents.get(f"axis{place}", self.extents[unnamed]) != self.extents[unnamed]:
                place += 1
            self.extents[f"axis{place}"] = self.extents[unnamed]
            self.names[unnamed] = Axis(f"axis{place}")
        return bool(left)

    def table(self) -> dict[str, int]:
        """Extents by name, the file's own axes first since they stand left of the laws'."""
        used = {n: e for n, e in self.extents.items() if n not in self.names}
        files = sorted((n for n in used if n[0] == "?" or n.startswith("axis")), reverse=True)
        return {n: used[n] for n in [*files, *(n for n in used if n not in files)]}

    def join(self, layouts: Sequence[Layout], who: str) -> Layout:
        """Layouts aligned from the right, the longest of them."""
        longest = max(layouts, key=len, default=())
        for layout in layouts:
            for a, b in zip(reversed(layout), reversed(longest), strict=False):
                self.unify(a, b, who)
        return longest


def _quote(axis: Axis) -> str:
    if axis.name.startswith("?"):
        return f"an axis of '{axis.name[1:].rpartition('.')[0].removeprefix('parameter ')}'"
    return f"'{axis}'"


def _refuse(code: str, message: str, fix: str | None = None) -> IngotError:
    return IngotError([Problem(code, message, None, fix)])
