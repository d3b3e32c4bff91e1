"""Turn a use that a point program cannot hold into an error that names the law and its line."""

import linecache
import sys
from pathlib import Path
from types import FrameType

from ingot.errors import IngotError, Problem, Span

__all__ = ["refuse"]

_ROOMS = (Path(__file__).parent, Path(__file__).parent.parent / "program")


def refuse(what: str, fix: str) -> IngotError:
    """The error for `what`, placed at the innermost line that is neither ours nor torch's."""
    frame = _author(sys._getframe(1))
    place = None
    law = "a law"
    if frame is not None:
        file, line = frame.f_code.co_filename, frame.f_lineno
        text = linecache.getline(file, line).rstrip()
        law = f"'{frame.f_code.co_name}'"
        indent = len(text) - len(text.lstrip())
        place = Span(file, line, indent + 1, len(text) - indent, frame.f_code.co_name, text)
    message = f"{law} {what}, which a point program cannot hold"
    return IngotError([Problem("untraceable", message, place, fix)])


def _author(frame: FrameType | None) -> FrameType | None:
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        ours = any(room in file.parents for room in _ROOMS)
        if not ours and "torch" not in file.parts and not frame.f_code.co_filename.startswith("<"):
            return frame
        frame = frame.f_back
    return None
