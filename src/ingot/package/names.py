"""OLD:NEW and OUT:IN of the command line -> the names that a package shows, and its pairs."""

import re
from collections.abc import Iterator, Mapping, Sequence

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.package.target import spell_option
from ingot.types import lag
from ingot.types.spellings import Spellings, find_named, resolve_name

__all__ = ["rename", "resolve_pairs", "split_histories"]

_NAME = re.compile(r"[^\W\d][\w./<>+\-*!~]*", re.ASCII)
"""A word of HIT that is no number, and that may also stand on the left of a `=`."""


def rename(
    flag: str, rules: Sequence[str], known: Spellings, problems: list[Problem]
) -> dict[str, str]:
    """Every known name with its new one; rules that cannot be followed are added to problems."""
    names = {name: name for name in known}
    renamed: set[str] = set()

    def refuse(code: str, message: str, fix: str | None) -> None:
        problems.append(Problem(code, message, None, fix))

    for rule in rules:
        word, colon, new = rule.partition(":")
        if not colon or not new:
            refuse("wrong-value", f"{flag} {rule}", "write OLD:NEW")
            continue
        try:
            missing = f"{flag}: there is no '{word}'"
            old = resolve_name(word, known, missing, code="unknown-name")
        except IngotError as error:
            problems += error.problems
            continue
        if not _NAME.fullmatch(new):
            message = f"{flag} {rule}: no file can name a variable '{new}'"
            refuse("wrong-value", message, "write a plain letter, then letters, digits and _")
        elif old in renamed:
            refuse("wrong-value", f"{flag}: '{old}' is renamed twice", "keep one of the two")
        else:
            names[old] = new
            renamed.add(old)
    shown = list(names.values())
    for name in sorted({n for n in shown if shown.count(n) > 1}):
        refuse("duplicate-variable", f"{flag}: two are called '{name}'", "choose another")
    return names


def split_histories(inputs: Mapping[str, str], outputs: Mapping[str, str]) -> Iterator[Problem]:
    """A problem for each input that no longer has the name of the variable it is the history of.

    A driver gives `x~1` the `x` of the step before, and finds both by their names.
    """
    now = {**inputs, **outputs}
    for old, new in inputs.items():
        variable, steps = lag(old)
        wanted = f"{now.get(variable, variable)}~{steps}"
        if steps and variable in now and new != wanted:
            message = f"the driver knows '{new}' no longer as the history of '{now[variable]}'"
            yield Problem("wrong-value", message, None, f"give --rename-input {old}:{wanted}")


def resolve_pairs(
    words: Sequence[str], outputs: Sequence[str], inputs: Sequence[str], parameters: Spellings,
    promotable: Spellings, command: str = "",
) -> tuple[tuple[str, str], ...]:  # fmt: skip
    """The (output, input) pairs that words such as `stress:strain` or `stress:` ask for; an input
    may be a promoted parameter, of all that are promotable.

    command: what took the words
    """
    entering = {**dict.fromkeys(inputs, ()), **parameters}
    pairs: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for text in words:
        left, colon, right = text.partition(":")
        asked = spell_option(command, "derivative", text)
        if not colon:
            problems.append(Problem("wrong-value", asked, None, "write OUT:IN"))
            continue
        by = [*entering]
        if left and left not in outputs:
            message = f"{asked}: there is no output '{left}'"
            problems.append(Problem("unknown-name", message, None, did_you_mean(left, outputs)))
        try:
            missing = f"{asked}: there is no input '{right}', and no such parameter is promoted"
            promote = f"promote it: {spell_option(command, 'parameter', right)}"
            fix = promote if find_named(right, promotable) else None
            if right:
                by = [resolve_name(right, entering, missing, code="unknown-name", fix=fix)]
        except IngotError as error:
            problems += error.problems
        pairs += [(y, x) for y in ([left] if left else outputs) for x in by]
    raise_if(problems)
    return tuple(dict.fromkeys(pairs))
