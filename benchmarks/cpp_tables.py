"""What the C++ loader knows of Python: `python -m benchmarks.cpp_tables` prints `tables.h`.

Texts of errors, kinds of values, rules of solves, CPU levels, the version of metadata.
"""

import json
from pathlib import Path

from ingot import __version__
from ingot.codegen.cpu_levels import LEVELS
from ingot.errors import MEANT
from ingot.messages import INCONSISTENT, MESSAGES
from ingot.options import Knob, Newton, allowed, find_example, knobs_of, meta_of
from ingot.package.metadata import FORMAT, SCHEMA
from ingot.types import KINDS

__all__ = ["FILE", "write_tables"]

FILE = Path(__file__).parents[1] / "cpp" / "include" / "ingot" / "tables.h"
HEAD = """// What C++ shares with Python: printed by `python -m benchmarks.cpp_tables`.
#pragma once
#include <cstdint>

namespace ingot {
namespace tables {
"""


def write_tables() -> str:
    """The text of the header."""
    parts = [
        HEAD,
        f"constexpr const char* version = {_quote(__version__)};",
        f"constexpr const char* format = {_quote(FORMAT)};",
        f"constexpr int64_t schema = {SCHEMA};",
        "",
        "// A text by its key: the code, what is wrong, the remedy; words in braces are filled in.",
        "struct Message {",
        "  const char *key, *code, *text, *fix;",
        "};",
        "constexpr Message messages[] = {",
        *(
            f"    {{{', '.join(map(_quote, (key, *message)))}}},"
            for key, message in MESSAGES.items()
        ),
        "};",
        "",
        "// Words that mean another, whatever their letters say.",
        "struct Meant {",
        "  const char *word, *means;",
        "};",
        "constexpr Meant meant[] = {",
        *(f"    {{{_quote(word)}, {_quote(means)}}}," for word, means in MEANT.items()),
        "};",
        "",
        "// What metadata can say that does not agree with itself.",
        "struct Word {",
        "  const char *key, *text;",
        "};",
        "constexpr Word inconsistent[] = {",
        *(f"    {{{_quote(key)}, {_quote(text)}}}," for key, text in INCONSISTENT.items()),
        "};",
        "",
        "// Kinds of values and their base shapes.",
        "struct Kind {",
        "  const char* name;",
        "  int rank;",
        "  int64_t base[2];",
        "};",
        "constexpr Kind kinds[] = {",
        *(
            f"    {{{_quote(name)}, {len(kind.base)}, {{{', '.join(map(str, kind.base)) or 0}}}}},"
            for name, kind in KINDS.items()
        ),
        "};",
        "",
        "// CPU levels, best first, and what each needs of the words of /proc/cpuinfo.",
        "struct Level {",
        "  const char *name, *words;",
        "};",
        "constexpr Level levels[] = {",
        *(
            f"    {{{_quote(name)}, {_quote(' '.join(sorted(words)))}}},"
            for name, words in LEVELS.items()
        ),
        "};",
        "",
        *_write_rules(),
        "}  // namespace tables",
        "}  // namespace ingot",
        "",
    ]
    return "\n".join(parts)


def _write_rules() -> list[str]:
    knobs = knobs_of(Newton)
    return [
        "// A rule of a solve: its name in metadata and in a stub, what is allowed, what it",
        "// is unless told, and its range; a word is its place among the choices.",
        "struct Rule {",
        "  const char *name, *option, *allowed, *value;",
        "  bool whole;",
        "  double least, most;",
        "  bool above, below;  // whether the bounds themselves are out",
        "  // json: what it is unless told, as metadata has it; example: one that is in range",
        "  const char *choices, *json, *example;",
        "};",
        "constexpr Rule rules[] = {",
        *(f"    {{{_write_rule(knob)}}}," for knob in knobs),
        "};",
    ]


def _write_rule(knob: Knob) -> str:
    meta = meta_of(knob.kind)
    least = meta.ge if meta.ge is not None else meta.gt
    most = meta.le if meta.le is not None else meta.lt
    words = (knob.name, knob.option, allowed(knob.kind), repr(knob.default))
    numbers = (
        str(knob.c_type != "double").lower(),
        repr(float(0 if knob.choices else -1.7976931348623157e308 if least is None else least)),
        repr(
            float(
                len(knob.choices) - 1
                if knob.choices
                else 1.7976931348623157e308
                if most is None
                else most
            )
        ),
        str(meta.gt is not None).lower(),
        str(meta.lt is not None).lower(),
    )
    last = (" ".join(knob.choices), json.dumps(knob.default), find_example(knob.kind))
    return ", ".join([*map(_quote, words), *numbers, *map(_quote, last)])


def _quote(text: str) -> str:
    return json.dumps(text)


if __name__ == "__main__":
    FILE.write_text(write_tables())
