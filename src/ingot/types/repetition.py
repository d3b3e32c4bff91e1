"""Steps of a law that are the same: sweeps, bisections, substeps."""

from collections.abc import Callable
from typing import Any

from ingot.types.value import Atom, Value, atoms_of, on_atoms

__all__ = ["repeat"]


def repeat(n: int, body: Callable[..., Any], carry: Any) -> Any:
    """What is carried after n steps of `body`, a function of a value, or of as many as a tuple has.

    A trace calls the body on placeholders: it is one loop of the program, however large n is. What
    changes from step to step is carried; a body that counts in Python is refused.
    """
    if type(n) is not int or n < 0:
        raise TypeError(f"repeat takes a number of steps, not {n!r}")
    values = carry if isinstance(carry, tuple) else (carry,)
    if not all(isinstance(v, Value) for v in values):
        raise TypeError("repeat carries values, such as Scalar(0.0)")

    def step(*now: Value) -> tuple[Value, ...]:
        result = body(*now)
        given = result if isinstance(result, tuple) else (result,)
        kinds = [" ".join(type(v).__name__ for v in each) for each in (values, given)]
        if kinds[0] != kinds[1]:
            raise TypeError(f"repeat carries {kinds[0]}, and its body returns {kinds[1]}")
        return given

    # what is carried may be constant at first, and only the body read what is traced
    atom = on_atoms(*values) or (on_atoms(*step(*values)) if n else None)
    if atom is None:
        for _ in range(n):
            values = step(*values)
    else:
        values = _on_atoms(atom, n, step, values)
    return values if isinstance(carry, tuple) else values[0]


def _on_atoms(
    atom: Atom, n: int, step: Callable[..., tuple[Value, ...]], values: tuple[Value, ...]
) -> tuple[Value, ...]:
    def flatten(values: tuple[Value, ...]) -> list[Atom]:
        return [a for v in values for a in atoms_of(atom, v)]

    parts = [atoms_of(atom, v) for v in values]

    def assemble(atoms: tuple[Atom, ...]) -> tuple[Value, ...]:
        left = iter(atoms)
        return tuple(
            type(v)(tuple(next(left) for _ in part)) for v, part in zip(values, parts, strict=True)
        )

    start = flatten(values)
    return assemble(atom.repeat(n, lambda atoms: flatten(step(*assemble(atoms))), start))
