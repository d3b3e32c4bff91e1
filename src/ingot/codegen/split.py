"""Long programs split into functions of bounded length, so that compile time stays linear.

The split is where liveness is least; values that are live across it lie in a scratch array.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingot.codegen.lines import Access, Lines
from ingot.codegen.statements import write_function
from ingot.codegen.values import read_entry
from ingot.program import Node, operation
from ingot.program.schedule import count_alive, schedule_lines

__all__ = ["MAX_FUNCTION_LINES", "SplitFunctions", "is_long", "split_functions"]

MAX_FUNCTION_LINES = 8000
"""Above so many lines a function is split: compile time grows faster than its length."""


@dataclass(frozen=True, slots=True)
class SplitFunctions:
    """Functions, and which of them each phase calls.

    places: how a root is written once its phase has run; scratch: the size of the scratch array.
    """

    functions: list[str]
    calls: list[list[str]]
    places: dict[int, Access]
    scratch: int

    @property
    def names(self) -> list[str]:
        """The names of all functions."""
        return [name for phase in self.calls for name in phase]


def is_long(
    roots: Sequence[Node], known: Mapping[int, Access], limit: int = MAX_FUNCTION_LINES
) -> bool:
    """Whether the lines of the roots are too many for one function, and all straight."""
    lines = schedule_lines(roots, known)
    if len(lines) <= limit:
        return False
    return not any(n.axes or operation(n.op).is_block for n in lines)


def split_functions(
    phases: Sequence[Sequence[Node]],
    known: Mapping[int, Access],
    name: str,
    printer: Callable[[], Lines],
) -> SplitFunctions:
    """Functions `name_i` that compute the roots of each phase from `g`, `u`, `b`, the scratch."""
    chunks: list[tuple[int, list[Node]]] = []
    done = set(known)
    for phase, roots in enumerate(phases):
        lines = [n for n in schedule_lines(roots, done) if n.op != "const"]
        done |= {n.id for n in lines}
        chunks += [(phase, part) for part in _split_lines(lines)]
    last = {a.id: i for i, (_, part) in enumerate(chunks) for n in part for a in n.args}
    # roots are read after everything
    last |= {root.id: len(chunks) for roots in phases for root in roots}
    slots, size = _assign_slots(chunks, last)
    places: dict[int, Access] = {}
    functions: list[str] = []
    calls: list[list[str]] = [[] for _ in phases]
    for i, (phase, part) in enumerate(chunks):
        lines = printer()
        lines.name(known)
        lines.name(places)
        kept = [n for n in part if n.id in slots]
        body = lines(kept)
        body += [f"t[{slots[n.id]}] = (V){lines.read(n)};" for n in kept]
        places.update({n.id: read_entry(n, "t", slots[n.id]) for n in kept})
        head = f"INGOT_CALL void {name}_{i}([[maybe_unused]] const V* __restrict g,"
        head += " [[maybe_unused]] const V* __restrict u, [[maybe_unused]] const V* __restrict b,"
        functions.append(write_function(f"{head} V* __restrict t)", body))
        calls[phase].append(f"{name}_{i}")
    return SplitFunctions(functions, calls, places, size)


def _split_lines(lines: list[Node]) -> list[list[Node]]:
    """Lines split into parts of about equal length, each cut where the fewest values are alive."""
    count = max(1, round(len(lines) / MAX_FUNCTION_LINES))
    own = {n.id for n in lines}
    operands = {n.id: [a.id for a in n.args if a.id in own] for n in lines}
    alive = [*count_alive([*operands], operands, ())]
    edges = [0]
    for k in range(1, count):
        middle = len(lines) * k // count
        reach = len(lines) // (4 * count)
        edges.append(min(range(middle - reach, middle + reach + 1), key=lambda i: alive[i]))
    edges.append(len(lines))
    return [lines[a:b] for a, b in pairwise(edges) if b > a]


def _assign_slots(
    chunks: Sequence[tuple[int, list[Node]]], last: Mapping[int, int]
) -> tuple[dict[int, int], int]:
    """A place in the scratch for every value read beyond its own chunk, reused when it is dead.

    last: the last chunk that reads each line.
    """
    slots: dict[int, int] = {}
    free: list[int] = []
    size = 0
    ending: dict[int, list[int]] = {}
    for i, (_, part) in enumerate(chunks):
        for node in part:
            if last.get(node.id, -1) > i:
                if not free:
                    free.append(size)
                    size += 1
                slots[node.id] = free.pop()
                ending.setdefault(last[node.id], []).append(slots[node.id])
        free += ending.pop(i, [])
    return slots, size
