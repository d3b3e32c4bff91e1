"""Calls of functions on whole grids: what they may not do or return, and their errors as problems.

In: a function, its arguments and options. Out: what it gives, or a problem of its block.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, Span
from ingot.fields.spaces import Grid, Narrow, Space, Spectrum
from ingot.graphs import torch_private

if TYPE_CHECKING:
    from ingot.fields.step import State, Step

__all__ = [
    "CHECKS", "Refused", "call", "close", "described", "gives_spectra", "is_ours", "misfit",
    "told_of",
]  # fmt: skip

CHECKS = 2
"""How many calls are compared: a value frozen at the first passes the first."""


WATCHED: WeakKeyDictionary[object, int] = WeakKeyDictionary()
"""How many calls of a step or a postprocessor were seen to leave all numbers as they were."""


class Refused(IngotError):
    """What a compute does that it may not, compiled or not."""


def misfit(step: Step, results: Sequence[Any], space: Space) -> Problem | None:
    """What a user's function returns that cannot be the buffers it gives."""
    name, problem = step.function.__name__, functools.partial(Problem, "wrong-result")
    if len(results) != len(step.gives):
        wanted = ", ".join(f"'{each}'" for each in step.gives)
        message = f"{name} returns {len(results)} results, not {len(step.gives)}"
        return problem(message, step.span, f"return a tensor for each of these: {wanted}")
    kinds = returned_kinds(step.function)
    shapes = [space.shape] * (Grid in kinds) + [space.spectrum_shape] * (Spectrum in kinds)
    for result, buffer in zip(results, step.gives, strict=True):
        if not isinstance(result, Tensor):
            fix = "return a tensor: space.full(value) for a number, torch.from_numpy for an array"
            return problem(f"{name} returns {described(result)}, not a tensor", step.span, fix)
        # what a compute prepares for itself may have any shape
        if "#" not in buffer and not any(fits(result.shape, shape) for shape in shapes):
            belong = " or ".join(" x ".join(map(str, shape)) for shape in dict.fromkeys(shapes))
            message = f"{name} returns {described(result)} where {belong} belong"
            kind = "" if len(kinds) > 1 else f" of the {'Grid' if Grid in kinds else 'Spectrum'}"
            fix = f"keep the axes{kind} first, with all their cells or one, and components behind"
            return problem(message, step.span, fix)
    return None


def described(result: Any) -> str:
    """What a function returned, in a message."""
    if isinstance(result, Tensor):
        return f"{' x '.join(map(str, result.shape)) or 'one'} numbers"
    return "None" if result is None else f"a value of type {type(result).__name__}"


def fits(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether a tensor holds a field of some shape; one number is a field that is constant."""
    # the open sizes of a graph that is being captured are compared when it is checked
    if not sizes or not all(isinstance(n, int) for n in (*sizes, *shape)):
        return True
    return len(sizes) >= len(shape) and all(
        n in (1, size) for n, size in zip(sizes, shape, strict=False)
    )


@functools.lru_cache(maxsize=4096)
def returned_kinds(function: Callable[..., Any]) -> tuple[Any, ...]:
    """What a function may return: what it is declared to, where it takes nothing Narrow."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return Grid, Spectrum
    given = hints.pop("return", None)
    found = tuple(kind for kind in (Grid, Spectrum) if kind in (given, *get_args(given)))
    narrow = any(Narrow in (hint, *get_args(hint)) for hint in hints.values())
    return found if found and not narrow else (Grid, Spectrum)


def call(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
    owner: object,
) -> Any:
    """What a function gives; one that writes into what it was given is refused.

    Buffers, old states and what a compiled sequence is compared with share their memory. Torch does
    not count what is written through NumPy or `.data`: the first calls of each owner are compared.
    """
    held = {f"its argument '{name}'": tuple(tensors_in(x)) for name, x in arguments.items()}
    held |= {f"'{name}', which it keeps": (x,) for name, x in kept_tensors(function)}
    before = {name: versions(found) for name, found in held.items()}
    watched = WATCHED.get(owner, 0)
    # what a mode of torch runs has no numbers, or others than those of the arguments
    watch = watched < CHECKS and not is_ours(function) and not torch_private.any_dispatch()
    copies = {name: [x.clone() for x in found] for name, found in held.items()} if watch else {}
    result = function(**arguments, **options)
    for name, found in held.items():
        same = all(map(same_numbers, found, copies[name])) if watch else True
        if not same or versions(found) != before[name]:
            message = f"{function.__name__} writes into {name}"
            fix = "compute a new tensor: x = x + 1 rather than x += 1, torch.where or clone()"
            raise Refused([Problem("writes-argument", message, getattr(owner, "span", None), fix)])
    if watch:
        WATCHED[owner] = watched + 1
    return result


def is_ours(function: Callable[..., Any]) -> bool:
    """Whether a function is one of this library."""
    return str(getattr(function, "__module__", "")).split(".")[0] == __name__.split(".")[0]


def gives_spectra(function: Callable[..., Any]) -> bool:
    """Whether what a function returns lies over wavenumbers."""
    return returned_kinds(function) == (Spectrum,)


def close(part: Tensor, expected: Tensor) -> bool:
    """Whether two tensors hold the same up to rounding of sums over the box."""
    if part.shape != expected.shape or not (part.is_floating_point() or part.is_complex()):
        return torch.equal(part, expected)
    largest = float(expected.abs().nan_to_num().max()) if expected.numel() else 0.0
    return torch.allclose(part, expected, rtol=1e-8, atol=1e-8 * largest, equal_nan=True)


def same_numbers(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors hold the same, NaN included."""
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of an argument."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Space):
        yield from value.tensors()
    elif isinstance(value, tuple):
        yield from (each for each in value if isinstance(each, Tensor))


def kept_tensors(function: Callable[..., Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors that a function refers to by name: globals, what it encloses, defaults."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    names = {name: function.__globals__.get(name) for name in code.co_names}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    names |= {name: cell.cell_contents for name, cell in cells}
    yield from ((name, value) for name, value in names.items() if isinstance(value, Tensor))


def versions(tensors: Sequence[Tensor]) -> list[int]:
    """How often each has been written into; views count with what they look at."""
    return [0 if each.is_inference() else each._version for each in tensors]


def own_line(error: Exception) -> str:
    """The line of a user's compute at which an error came up, in a message; else nothing."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(Path(__file__).parents[1]):
            break
        if "torch" not in path.parts:
            return f" (at {path.name}:{frame.lineno})"
    return ""


@contextmanager
def told_of(name: str, span: Span | None, state: State, reads: Sequence[str]) -> Iterator[None]:
    """Tell an error of torch as one of a block of the file, with what the block reads."""
    try:
        yield
    except IngotError as error:
        found = (replace(each, span=each.span or span) for each in error.problems)
        raise IngotError(found) from error
    except (RuntimeError, ValueError, TypeError, IndexError, ArithmeticError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        message = f"'{name}' cannot be computed: {first}{own_line(error)}"
        inputs = ", ".join(f"'{each}' is {state.described(each)}" for each in reads)
        fix = inputs or "check its options, and whether the grid fits into memory"
        raise IngotError([Problem("compute-failed", message, span, fix)]) from error
