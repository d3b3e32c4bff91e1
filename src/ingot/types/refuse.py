"""Turn a use that a point program cannot hold into an error that names the law and its line."""

import linecache
import sys
from pathlib import Path
from types import FrameType

import torch

from ingot.errors import IngotError, Problem, Span

__all__ = ["refuse"]

_PROGRAM = Path(__file__).parent.parent / "program"
_OURS = (Path(__file__).parent, _PROGRAM, Path(torch.__file__).parent)


def refuse(what: str, fix: str) -> IngotError:
    """The error for `what`, placed at the innermost line that is neither ours nor torch's."""
    frames = _authors(sys._getframe(1))
    if not frames:
        message = f"a law {what}, which a point program cannot hold"
        return IngotError([Problem("untraceable", message, None, fix)])
    frame, law = frames[0], frames[-1].f_code.co_name
    file, line, name = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
    text = linecache.getline(file, line).rstrip()
    indent = len(text) - len(text.lstrip())
    where = law if name.startswith("<") else name
    place = Span(file, line, indent + 1, len(text) - indent, where, text)
    message = f"'{law}' {what}, which a point program cannot hold"
    return IngotError([Problem("untraceable", message, place, fix)])


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
