"""Tracebacks and nodes of graphs -> the user's lines that they come from."""

import linecache
import re
from pathlib import Path
from typing import Any

from torch.fx import Node

from ingot.errors import Span
from ingot.graphs.torch_private import FOLDER

__all__ = ["find_definition", "find_span", "find_span_in", "print_place"]

FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)(?:\n(?! *File) +(.*))?')
ROOM = str(Path(__file__).parent)


def find_span(node: Node) -> Span | None:
    """The line of the user's source that a node comes from."""
    return find_span_in(node.meta.get("stack_trace") or "")


def find_span_in(text: str) -> Span | None:
    """The innermost line that a traceback in a text names: the user's, or else torch's."""
    frames = [f for f in FRAME.findall(text) if not f[0].startswith(("<", ROOM))]
    own = [f for f in frames if not f[0].startswith(str(FOLDER))] or frames
    if not own:
        return None
    file, line, function, code = own[-1]
    return Span(file, int(line), block=function, text=code)


def find_definition(source: Any) -> Span | None:
    """The line where a function, or the method of a module that is called, begins."""
    code = getattr(getattr(source, "forward", source), "__code__", None)
    if code is None:
        return None
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return Span(code.co_filename, code.co_firstlineno, block=code.co_name, text=line)


def print_place(node: Node) -> str:
    """An operation and the line that it comes from, in a few words."""
    name, span = getattr(node.target, "__name__", node.target), find_span(node)
    return f"{name} at {Path(span.file).name}:{span.line}" if span else str(name)
