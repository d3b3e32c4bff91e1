"""Turn a use that a point program cannot hold into an error that names the law and its line."""

import inspect
import re
import sys
from pathlib import Path
from types import FrameType

import torch

from ingot.errors import IngotError, Problem, Span, span_at

__all__ = ["blamed", "misused", "refuse"]

_INGOT = Path(__file__).parent.parent
_PROGRAM = _INGOT / "program"
_TORCH = Path(torch.__file__).parent
_PLAIN = re.compile(r"str|<class '(int|str)'>|collections\.abc\.Callable")
"""Annotations of what is no value: names of axes, numbers of steps, functions."""
_OURS = (Path(__file__).parent, _PROGRAM, _TORCH)


def refuse(what: str, fix: str) -> IngotError:
    """The error for `what`, placed at the innermost line that is neither ours nor torch's."""
    frames = _authors(sys._getframe(1))
    if not frames:
        message = f"a law {what}, which a point program cannot hold"
        return IngotError([Problem("untraceable", message, None, fix)])
    law = frames[-1].f_code.co_name
    message = f"'{law}' {what}, which a point program cannot hold"
    return IngotError([Problem("untraceable", message, span_at(frames[0], law), fix)])


def blamed(error: BaseException) -> Span | None:
    """The innermost line outside Ingot and torch that an error came through."""
    found: Span | None = None
    law = ""
    step = error.__traceback__
    while step is not None:
        file = Path(step.tb_frame.f_code.co_filename)
        if _INGOT not in file.parents and _TORCH not in file.parents:
            law = law or step.tb_frame.f_code.co_name
            found = span_at(step.tb_frame, law, step.tb_lineno)
        step = step.tb_next
    return found


def misused(error: BaseException) -> tuple[str, str] | None:
    """What a function of `ingot.types` was given that is no value, or does not fit, and what it
    takes; also one that is asked for as a method.

    None where the error of a law came through no such function.
    """
    rooms = sys.modules["ingot.types"]
    if isinstance(error, AttributeError) and isinstance(error.obj, rooms.Value):
        if error.name in rooms.__all__:
            return f"'{error.name}' is a function, no method", f"write {error.name}(...)"
        return None
    refused = re.match(r"(\w+)\(\) ", str(error)) if isinstance(error, TypeError) else None
    called = getattr(rooms, refused[1], None) if refused is not None else None
    if refused is not None and refused[1] in rooms.__all__ and inspect.isfunction(called):
        words = ", ".join(map(_spell_slot, inspect.signature(called).parameters.values()))
        return str(error), f"write {refused[1]}({words})"
    step = error.__traceback__
    while step is not None and Path(step.tb_frame.f_code.co_filename).parent != _OURS[0]:
        step = step.tb_next
    name = step.tb_frame.f_code.co_name if step is not None else ""
    function = getattr(rooms, name, None)
    if step is None or name not in rooms.__all__ or not inspect.isfunction(function):
        return None
    takes = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    given = [step.tb_frame.f_locals.get(p.name) for p in takes]
    values = [x for p, x in zip(takes, given, strict=True) if not _PLAIN.match(str(p.annotation))]
    flat = [x for each in values for x in (each if isinstance(each, tuple) else (each,))]
    if all(isinstance(each, rooms.Value) for each in flat):
        return None
    kinds = ", ".join(type(each).__name__ for each in given)
    words = ", ".join(map(_spell_slot, takes))
    return f"'{name}' was given {kinds}", f"write {name}({words})"


def _spell_slot(slot: inspect.Parameter) -> str:
    return re.sub(r"~|[\w.]+\.(?=[A-Za-z_])", "", str(slot))


def _authors(frame: FrameType | None) -> list[FrameType]:
    """The law's own frames: where it stands, what called that, and last the law itself."""
    found: list[FrameType] = []
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<") and not any(room in Path(file).parents for room in _OURS):
            found.append(frame)
        elif found and _PROGRAM in Path(file).parents:
            return found
        frame = frame.f_back
    return found[:1]
