"""What can go wrong, where, and how to mend it.

In: problems found by any stage. Out: one IngotError whose text is what the user reads.
"""

from __future__ import annotations

import difflib
import linecache
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

__all__ = [
    "IngotError",
    "IngotWarning",
    "Problem",
    "Span",
    "caller",
    "did_you_mean",
    "is_own",
    "nearest",
    "raise_if",
    "span_at",
    "warn_of",
]

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the user's files: `length` characters of the line `text`, inside `block`.

    Lines and columns count from 1. For Python `block` is the function, and no column is shown;
    a span without length gets no carets, its fix begins at the column.
    """

    file: str
    line: int
    column: int = 0
    length: int = 0
    block: str = ""
    text: str = ""

    @property
    def is_python(self) -> bool:
        """Whether this is a place in Python code."""
        return self.file.endswith(".py") or self.file.startswith("<ipython")

    def __str__(self) -> str:
        if self.is_python:
            return f"{self.file}:{self.line}" + (f" in {self.block}" if self.block else "")
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column}" + (f" in [{self.block}]" if self.block else "")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: what (`message`), where (`span`) and how to mend it (`fix`)."""

    code: str
    message: str
    span: Span | None = None
    fix: str | None = None

    def __str__(self) -> str:
        return self.text("error")

    def text(self, severity: str) -> str:
        """What the user reads, under the word `error` or `warning`."""
        head = f"{severity}[{self.code}]: {self.message}"
        if self.span is None:
            return "\n".join([head, *plain_fix(self.fix)])
        return "\n".join([head, f"  --> {self.span}", *excerpt(self.span, self.fix)])


class IngotError(Exception):
    """All problems of one stage, in the order of their files and lines."""

    problems: tuple[Problem, ...]

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=by_place))
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n\n".join(str(problem) for problem in self.problems)


class IngotWarning(UserWarning):
    """A result that may not be what the user meant, and was computed all the same."""

    problem: Problem

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem)

    def __str__(self) -> str:
        return self.problem.text("warning")


def warn_of(problems: Iterable[Problem], *, strict: bool = False) -> None:
    """Tell what peers do silently and their files rely on; where `strict`, raise it as one error.

    The command line prints the warnings to stderr, each once.
    """
    found = tuple(problems)
    if strict:
        raise_if(found)
    for problem in sorted(found, key=by_place):
        warnings.warn(IngotWarning(problem), stacklevel=_count_own_frames() + 1)


def _count_own_frames() -> int:
    """How many frames up from the caller's the first line outside of Ingot stands."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(frame):
        frame, count = frame.f_back, count + 1
    return count - 1


def caller() -> Span | None:
    """The innermost line outside Ingot and torch that is running, if it stands in a file.

    Below a command there is none: what calls it is no code of the user.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        if _HERE / "cli" in Path(frame.f_code.co_filename).parents:
            return None
        frame = frame.f_back
    if frame is None or not linecache.getline(frame.f_code.co_filename, frame.f_lineno):
        return None  # typed at a prompt that keeps no lines
    return span_at(frame, "")


def is_own(frame: FrameType) -> bool:
    """Whether a frame is of Ingot."""
    return _HERE in Path(frame.f_code.co_filename).parents


def _is_ours(frame: FrameType) -> bool:
    """Whether Ingot runs there, or torch, which stands between a module and its call."""
    return is_own(frame) or frame.f_globals.get("__name__", "").partition(".")[0] == "torch"


def span_at(frame: FrameType, law: str, line: int | None = None) -> Span:
    """The line at which a frame stands, inside its function; a comprehension is inside the law."""
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    number = line or frame.f_lineno or 1
    text = linecache.getline(file, number).rstrip()
    indent = len(text) - len(text.lstrip())
    block = law if name.startswith("<") else name
    return Span(file, number, indent + 1, len(text) - indent, block, text)


def raise_if(problems: Iterable[Problem]) -> None:
    """Raise one IngotError that holds all the problems, if there are any."""
    found = tuple(problems)
    if found:
        raise IngotError(found)


MEANT = {
    "gpu": "cuda", "nvidia": "cuda", "double": "float64", "single": "float32", "float": "float32",
    "half": "float32", "float16": "float32", "bfloat16": "float32",
}  # fmt: skip
"""Words that mean another, or come nearest to it, whatever their letters say."""

MAX_LETTERS = 200  # a word beyond that is no misspelt name, and comparing it takes its time


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that `word` was most likely meant to be, whatever its capitals.

    cutoff: how much of the two words must agree, from 0 to 1.
    """
    if len(word) > MAX_LETTERS:
        return None
    by_lower = {name.lower(): name for name in sorted(known)}
    if MEANT.get(word.lower()) in by_lower:
        return by_lower[MEANT[word.lower()]]
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The fix for a misspelt word, if a known one is close."""
    meant = nearest(word, known)
    return None if meant is None else f"did you mean '{meant}'?"


def by_place(problem: Problem) -> tuple[bool, str, int, int]:
    """Sort key: file, line, column; problems without a place come last."""
    span = problem.span
    if span is None:
        return (True, "", 0, 0)
    return (False, span.file, span.line, span.column)


def plain_fix(fix: str | None) -> list[str]:
    return [] if fix is None else [f"  fix: {fix}"]


def excerpt(span: Span, fix: str | None) -> list[str]:
    """The source line, and under it the carets and the fix."""
    if not span.text.strip():
        return plain_fix(fix)
    number = str(span.line)
    indent = len(span.text) - len(span.text.lstrip())
    before = span.text[: span.column - 1 if span.column else indent]
    # Tabs are kept, so that the carets stand under their word whatever the tab width.
    margin = "".join("\t" if letter == "\t" else " " for letter in before)
    marks = " ".join(part for part in ("^" * span.length, fix) if part)
    lines = [f"{number} | {span.text.rstrip()}"]
    return [*lines, f"{' ' * len(number)} | {margin}{marks}"] if marks else lines
