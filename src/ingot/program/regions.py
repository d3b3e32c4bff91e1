"""Repeated parts of a program: solve -> regions, each one block of code with several instances.

Instances are walked in step from their residuals. Where all read one line it is shared; where
they read lines of equal code these belong to the region; everything else is lifted to an argument.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingot.program.builder import Node, sort_lines
from ingot.program.implicit import Solve
from ingot.program.operations import operation
from ingot.program.program import Program
from ingot.types.elementwise import ELEMENTWISE

__all__ = [
    "MIN_INSTANCES_TO_CONDENSE", "MIN_INSTANCES_TO_OUTLINE", "Region", "Twins",
    "align_operands", "describe_regions", "find_regions", "find_twins", "format_regions",
    "grow_twins", "number_codes",
]  # fmt: skip

MIN_INSTANCES_TO_CONDENSE = 4
"""From how many instances on a region is eliminated before what is around it: fewer are as quickly
ordered together (benchmarks/chaboche.py)."""
MIN_INSTANCES_TO_OUTLINE = 6
"""From how many instances on a region is a function of its own: fewer gain no time by it
(benchmarks/chaboche.py)."""
Twins = tuple[Node, ...]
"""Lines of equal code, one of each instance."""
Codes = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Region:
    """A block of code that a solve runs once for each instance.

    instances: the unknowns that tell them apart; lines: what each instance computes, in order;
    columns, rows: the unknowns and residuals of the instances; reads: what the lines read.
    """

    instances: tuple[str, ...]
    lines: tuple[Twins, ...]
    columns: tuple[Twins, ...]
    rows: tuple[Twins, ...]
    reads: tuple[Twins, ...]

    @property
    def lifted(self) -> tuple[Twins, ...]:
        """The constants that differ between instances."""
        return tuple(a for a in self._read() if a[0].op == "const")

    @property
    def arguments(self) -> tuple[Twins, ...]:
        """The values other than constants that differ between instances, unknowns among them."""
        return tuple(a for a in self._read() if a[0].op != "const")

    @property
    def shared(self) -> tuple[Node, ...]:
        """The values that all instances read; constants of equal value are part of the code."""
        return tuple(a[0] for a in self.reads if len(set(a)) == 1 and a[0].op != "const")

    @property
    def saved(self) -> int:
        """How many lines are not written again."""
        return len(self.lines) * (len(self.instances) - 1)

    def _read(self) -> list[Twins]:
        inside = set(self.lines)
        return [a for a in self.reads if len(set(a)) > 1 and a not in inside]

    def __str__(self) -> str:
        lifted = self.lifted
        rows = [
            f"{len(self.lines)} lines for each of {len(self.instances)}, {self.saved} lines saved",
            f"{len(self.arguments)} values of its own for each, {len(self.shared)} shared by all",
            f"{len(lifted)} lifted parameters" + (":" if lifted else ""),
        ]
        for k, name in enumerate(self.instances if lifted else ()):
            rows.append(f"  {name}  {' '.join(f'{t[k].attr:g}' for t in lifted)}")
        return "\n".join(rows)


def find_regions(solve: Solve) -> tuple[Region, ...]:
    """The regions of a solve: residuals of equal code, up to constants and to what they read.

    There are none where lines are on axes or are solves themselves: instances are plain lines.
    """
    if any(n.axes or operation(n.op).is_block for n in sort_lines(solve.rows)):
        return ()
    code = number_codes(solve.rows)
    groups: dict[object, list[int]] = {}
    for i, (unknown, residual) in enumerate(zip(solve.unknowns, solve.residuals, strict=True)):
        if len(unknown.nodes) == len(residual.nodes):
            same = (unknown.kind, tuple(code[n.id] for n in residual.nodes))
            groups.setdefault(same, []).append(i)
    told: list[Region] = []
    taken = {n.id for n in solve.columns}
    for group in groups.values():
        region = _find_region(solve, group, code, taken) if len(group) > 1 else None
        if region is not None:
            told.append(region)
            taken |= {n.id for line in region.lines for n in line}
    return tuple(told)


def _find_region(solve: Solve, group: Sequence[int], code: Codes, taken: set[int]) -> Region | None:
    """The region that starts at the residuals of some unknowns, less what others have taken."""
    rows = tuple(zip(*(solve.residuals[i].nodes for i in group), strict=True))
    columns = tuple(zip(*(solve.unknowns[i].nodes for i in group), strict=True))
    lines = find_twins(rows, code, taken)
    if any(row not in lines for row in rows):
        return None
    reads = tuple(dict.fromkeys(a for line in lines for a in align_operands(line, code)))
    return Region(tuple(solve.unknowns[i].name for i in group), tuple(lines), columns, rows, reads)


def number_codes(roots: Iterable[Node]) -> dict[int, int]:
    """A number for the code that each node is the result of, whatever its constants and inputs."""
    known: dict[object, int] = {}
    code: dict[int, int] = {}
    for node in sort_lines(roots):
        leaf = not node.args or node.op == "item"
        what = node.op if leaf else (node.op, node.attr, *(code[a.id] for a in node.args))
        code[node.id] = known.setdefault(what, len(known))
    return code


def find_twins(roots: Iterable[Twins], code: Codes, stop: Iterable[int] = ()) -> list[Twins]:
    """Lines of equal code that the roots are the results of, in an order in which they can run."""
    taken: dict[int, Twins] = {}
    ends = set(stop)
    result: dict[int, Twins] = {}
    stack = [(r, False) for r in reversed(list(roots))]
    while stack:
        line, ready = stack.pop()
        if ready:
            result[line[0].id] = line
        elif line[0].id not in taken and _are_equal(line, taken, ends):
            taken.update({n.id: line for n in line})
            stack.append((line, True))
            stack += [(a, False) for a in reversed(align_operands(line, code))]
    return list(result.values())


def _are_equal(line: Twins, taken: Mapping[int, Twins], ends: set[int]) -> bool:
    """Whether nodes differ, are the same operation, and belong to no other line already."""
    first = line[0]
    if not first.args or first.op == "item" or operation(first.op).is_block:
        return False
    if len(set(line)) < len(line):
        return False
    if any(n.id in taken or n.id in ends for n in line):
        return False
    return all(
        (n.op, n.attr, n.axes, len(n.args)) == (first.op, first.attr, (), len(first.args))
        for n in line
    )


def grow_twins(
    lines: Sequence[Node], known: Sequence[Twins], code: Codes, stop: Iterable[int] = ()
) -> list[Twins]:
    """Twins, and the lines that compute the same from them for every instance."""
    result = list(known)
    if not result:
        return result
    count = len(result[0])
    taken = {n.id for t in result for n in t} | set(stop)
    read = dict.fromkeys(a for t in result for a in align_operands(t, code))
    counterpart = {a[0].id: a for a in read if len(set(a)) == count and a[0].op != "const"}
    counterpart |= {t[0].id: t for t in result}
    alike: dict[object, list[Node]] = {}
    for node in lines:
        if node.args:
            alike.setdefault(_make_key(node, node.args), []).append(node)
    for node in lines:
        if node.id in taken or node.axes or not any(a.id in counterpart for a in node.args):
            continue
        at = alike[_make_key(node, node.args)].index(node)
        reads = [counterpart.get(a.id, (a,) * count) for a in node.args]
        others = [alike.get(_make_key(node, [r[k] for r in reads]), []) for k in range(count)]
        line = tuple(found[at] for found in others if at < len(found))
        if len(set(line)) == count and not any(n.id in taken for n in line):
            result.append(line)
            taken |= {n.id for n in line}
            counterpart[node.id] = line
    return result


def _make_key(node: Node, args: Sequence[Node]) -> object:
    """A line up to its constants, with the given operands."""
    read = [-1 if a.op == "const" else a.id for a in args]
    return (node.op, node.attr, *(sorted(read) if _commutes(node) else read))


def _commutes(node: Node) -> bool:
    row = ELEMENTWISE.get(node.op)
    return row is not None and row.commutes


def align_operands(line: Twins, code: Codes) -> list[Twins]:
    """What twins read, operand by operand; where order does not matter, like beside like."""
    first = line[0].args

    def fit(args: Sequence[Node]) -> int:
        pairs = zip(first, args, strict=True)
        return sum(2 * (a is b) + (code.get(a.id) == code.get(b.id)) for a, b in pairs)

    found = [first]
    for node in line[1:]:
        turned = node.args[::-1]
        swap = _commutes(node) and fit(turned) > fit(node.args)
        found.append(turned if swap else node.args)
    return list(zip(*found, strict=True))


def describe_regions(program: Program) -> list[dict[str, Any]]:
    """The regions of all solves of a program, as JSON holds it."""
    return [_describe_solve(solve, find_regions(solve)) for solve in program.solves]


def _describe_solve(solve: Solve, parts: Sequence[Region]) -> dict[str, Any]:
    return {
        "solve": solve.name,
        "lines": len([n for n in sort_lines(solve.rows) if n.args]),
        "distinct": len(parts),
        "instances": sum(len(p.instances) for p in parts),
        "blocks": [
            {
                "instances": list(p.instances), "lines": len(p.lines),
                "function": len(p.instances) >= MIN_INSTANCES_TO_OUTLINE,
            }
            for p in parts
        ],
    }  # fmt: skip


def format_regions(program: Program) -> str:
    """The regions of all solves of a program, as text."""
    told: list[str] = []
    for solve in program.solves:
        parts = find_regions(solve)
        row = _describe_solve(solve, parts)
        told.append(f"solve [{solve.name}]: {row['lines']} lines, {row['distinct']} repeated"
                    f" blocks, {row['instances']} instances")  # fmt: skip
        for i, part in enumerate(parts):
            many = len(part.instances) >= MIN_INSTANCES_TO_OUTLINE
            once = "a function of its own" if many else "written out"
            told.append(f"  region {i}: {', '.join(part.instances)} ({once} in --inline auto)")
            told += [f"    {line}" for line in str(part).splitlines()]
    return "\n".join(told) or "no solve"
