"""Tracebacks and nodes of graphs -> the user's lines that they come from."""

import linecache
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.fx import Node

from ingot.errors import IngotError, Span
from ingot.graphs.torch_private import FOLDER

__all__ = [
    "find_definition", "find_layer", "find_span", "find_span_in", "find_use", "placed",
    "print_place",
]  # fmt: skip

FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)(?:\n(?! *File) +(.*))?')
ROOM = str(Path(__file__).parent)


def find_span(node: Node) -> Span | None:
    """The line of the user's source that a node comes from."""
    return find_span_in(node.meta.get("stack_trace") or "")


def find_use(node: Node) -> Span | None:
    """The first line of the user's source that reads what a node gives."""
    return next(filter(None, map(find_span, node.users)), None)


def find_span_in(text: str) -> Span | None:
    """The innermost line that a traceback in a text names: the user's, or else torch's."""
    frames = [f for f in FRAME.findall(text) if not f[0].startswith(("<", ROOM))]
    own = [f for f in frames if not f[0].startswith(str(FOLDER))] or frames
    if not own:
        return None
    file, line, function, code = own[-1]
    return Span(file, int(line), block=function, text=code)


def find_layer(text: str) -> str:
    """The file and line of torch.nn at which a traceback in a text ends; nothing elsewhere."""
    *_, (file, line, *_) = ("", ""), *FRAME.findall(text)
    return f"{Path(file).name}:{line}" if file.startswith(f"{FOLDER / 'nn'}") else ""


def find_definition(source: Any) -> Span | None:
    """The line where a function, or the method of a module that is called, begins."""
    code = getattr(getattr(source, "forward", source), "__code__", None)
    if code is None:
        return None
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return Span(code.co_filename, code.co_firstlineno, block=code.co_name, text=line)


@contextmanager
def placed(span: Span | None) -> Iterator[None]:
    """Refusals that name no line inside name this one."""
    try:
        yield
    except IngotError as error:
        problems = [p if p.span else replace(p, span=span) for p in error.problems]
        raise IngotError(problems) from error.__cause__


def print_place(node: Node) -> str:
    """An operation and the line that it comes from, in a few words."""
    name, span = getattr(node.target, "__name__", node.target), find_span(node)
    return f"{name} at {Path(span.file).name}:{span.line}" if span else str(name)
