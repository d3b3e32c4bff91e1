"""Resolved: the values of a draft's fields, with every ${...} replaced.

In: a Draft. Out: texts, and problems for what cannot be replaced.
"""

from __future__ import annotations

import os
import re

from ingot.errors import Problem, did_you_mean
from ingot.hit.arithmetic import Fault, evaluate, write_number
from ingot.hit.source import Draft, Written, list_fields
from ingot.hit.tree import NUMBER
from ingot.hit.units import convert, parse_unit

__all__ = ["Resolved"]

COMMANDS = {
    "fparse": "${fparse 2*pi}",
    "units": "${units 1 mm -> m}",
    "env": "${env NAME}",
    "raw": "${raw a b}",
    "replace": "${replace name}",
}


MAX_DEPTH = 40
"""How far one value may lead to another: each takes some 15 calls of Python's 1000."""

MAX_LETTERS = 10_000_000
"""How long a value may grow, should each name stand for two of the next."""

MAX_SUGGESTIONS = 20
"""For how many missing names a near one is looked for: each is compared with all of the file."""


class Resolved:
    """The values of a draft's fields, every ${...} replaced; what cannot be is a problem.

    A name is looked up at the top of the file; as `moose` does, in the blocks around first.
    """

    def __init__(self, root: Draft, *, moose: bool = False) -> None:
        self.root = root
        self.moose = moose
        self.problems: list[Problem] = []
        self.texts: dict[str, str] = {}
        self.referred: set[str] = set()
        self.active: list[str] = []
        self.depth = 0

    def text(self, written: Written) -> str:
        """The value of one field."""
        path = written.path
        if path in self.active:
            circle = " -> ".join([*self.active[self.active.index(path) :], path])
            message = f"'{path}' refers to itself: {circle}"
            fix = "give one of them a plain value"
            problem = Problem("circular-substitution", message, written.value_span, fix)
            self.problems.append(problem)
            return ""
        if path not in self.texts:
            self.active.append(path)
            self.texts[path] = self.expanded(written.value, written)
            self.active.pop()
        return self.texts[path]

    def expanded(self, text: str, written: Written) -> str:
        """A text with its ${...} replaced by their values."""
        if self.depth == MAX_DEPTH:
            message, fix = "values lead to values without an end", "write the value itself"
            self.report(text, written, message, fix)
            return ""
        self.depth += 1
        try:
            return self.replaced(text, written)
        finally:
            self.depth -= 1

    def replaced(self, text: str, written: Written) -> str:
        """As `expanded`, within the depth."""
        done, rest = "", text
        while "${" in rest:
            before, _, rest = rest.partition("${")
            end = find_closing(rest)
            if end is None:
                self.report(rest, written, "this ${ is not closed", "close it with }")
                return ""
            done += before + self.value(rest[:end], written)
            rest = rest[end + 1 :]
            if len(done) > MAX_LETTERS:
                message = f"this value grows beyond {MAX_LETTERS} letters"
                self.report(text, written, message, "write shorter values")
                return ""
        return done + rest

    def value(self, inside: str, written: Written) -> str:
        """The value of one ${inside}; nested ones are replaced in the order they are written."""
        words = split_words(inside)
        command = words[0] if words else ""
        if command == "raw":
            return "".join(self.expanded(word, written) for word in words[1:])
        if command == "env" and len(words) == 2:
            # The language has it so: an unset variable is empty.
            return os.environ.get(self.expanded(words[1], written), "")
        if command in ("fparse", "units") and len(words) > 1:
            return self.computed(command, inside, written)
        if len(words) == 1 or (command == "replace" and len(words) == 2):
            return self.looked_up(self.expanded(words[-1], written), inside, written)
        message = f"${{{inside}}} is not understood: '{command}' is not a command"
        fix = did_you_mean(command, COMMANDS) or (
            "write the value itself, or use ${name}, ${fparse 2*pi}, ${units 1 mm -> m},"
            " ${env NAME}, ${raw a b}"
        )
        if command in COMMANDS:
            message = f"${{{inside}}} is not understood: '{command}' has not what it needs"
            fix = f"write {COMMANDS[command]}"
        self.report(inside, written, message, fix)
        return ""

    def computed(self, command: str, inside: str, written: Written) -> str:
        """The number that ${fparse ...} or ${units ...} stands for."""
        before = len(self.problems)
        text = self.expanded(inside.strip().removeprefix(command), written).strip()
        if len(self.problems) > before:
            return ""
        try:
            if command == "units":
                return convert_units(text)
            value = evaluate(text, lambda name: self.number(name, inside, written))
        except Fault as fault:
            # A name that is missing was reported where it was looked up.
            if len(self.problems) == before:
                self.report(inside, written, str(fault), fault.fix)
            return ""
        return "" if len(self.problems) > before else write_number(value)

    def number(self, name: str, inside: str, written: Written) -> float:
        """The value of a bare name in an expression; 1 where it has none, which is reported."""
        text = self.looked_up(name, inside, written).strip()
        if not text and self.problems:
            return 1.0
        if not NUMBER.fullmatch(text):
            message = f"'{name}' is '{text}', which is not a number"
            raise Fault(message, f"write ${{{name}}} to put the text itself here")
        return float(text)

    def looked_up(self, name: str, inside: str, written: Written) -> str:
        """The value of the field at a path from the top of the file, or from a block around."""
        *block, last = [part for part in name.split("/") if part] or [name]
        depths = range(len(written.block), -1, -1) if self.moose else [0]
        for depth in depths:
            for draft in self.root.at([*written.block[:depth], *block]):
                found = draft.fields.get(last)
                if found is not None and (found is not written or depth == 0):
                    self.referred.add(found.path)
                    return self.text(found)
        known = (each.path for each in list_fields(self.root))
        few = len(self.problems) < MAX_SUGGESTIONS
        message, fix = f"there is no value '{name}'", did_you_mean(name, known) if few else None
        if self.root.at([*block, last]):
            message, fix = f"'{name}' is a block, not a value", f"write ${{{name}/option}}"
        self.report(inside, written, message, fix or f"add '{name} = ...' at the top of the file")
        return ""

    def report(self, inside: str, written: Written, message: str, fix: str) -> None:
        """Add a problem that points at one ${inside}."""
        at = written.source.text.find("${" + inside, written.at)
        span = written.value_span
        if at >= 0:
            span = written.source.span(at, len(inside) + 3, written.span.block)
        self.problems.append(Problem("unresolved-substitution", message, span, fix))


def find_closing(text: str) -> int | None:
    """Where the } stands that closes a ${ just before the text."""
    depth = 1
    for mark in re.finditer(r"\$\{|\}", text):
        depth += 1 if mark[0] == "${" else -1
        if depth == 0:
            return mark.start()
    return None


def split_words(text: str) -> list[str]:
    """The words of a text; blanks inside ${...} do not separate."""
    words, depth, start = [], 0, 0
    for piece in re.finditer(r"\$\{|\}|\s+", text):
        depth += (piece[0] == "${") - (piece[0] == "}")
        if piece[0].isspace() and depth == 0:
            words.append(text[start : piece.start()])
            start = piece.end()
    words.append(text[start:])
    return [word for word in words if word]


def convert_units(text: str) -> str:
    """The number that `90 MPa -> Pa` or `10 s` stands for."""
    given, arrow, wanted = text.partition("->")
    word, unit = (*given.split(maxsplit=1), "", "")[:2]
    if not NUMBER.fullmatch(word):
        raise Fault(f"'{word}' is not a number", "write ${units 1 mm -> m}")
    if not arrow:
        parse_unit(unit.strip())
        return word
    return write_number(convert(float(word), unit.strip(), wanted.strip()))
