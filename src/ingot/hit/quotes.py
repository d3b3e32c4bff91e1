"""masked, unmasked: quoted values as MOOSE has them, in letters that nmhit takes.

In: text whose quoted values hold # $ ; or the other quote, or stand in several quotes one after the
other. Out: text of the same length and lines, and back.
"""

from __future__ import annotations

import re

__all__ = ["mask_text", "quote_override", "unmask"]

STANDS_FOR = {"#": "\x01", "$": "\x02", "'": "\x03", '"': "\x04", ";": "\x06"}
JOIN = "\x05"
BACK = str.maketrans({mask: letter for letter, mask in STANDS_FOR.items()})
# Comments, text between three quotes and ${...} stay as they are.
PIECE = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<verbatim>'{3}.*?'{3}|"{3}.*?"{3})
    |(?P<quoted>(?:'[^']*'|"[^"]*")(?:\s*(?:'[^']*'|"[^"]*"))*)""",
    re.DOTALL | re.VERBOSE,
)
PART = re.compile(r"'[^']*'|\"[^\"]*\"")


def mask_text(text: str) -> str:
    """The text with every letter that nmhit refuses in a quoted value replaced by one it takes."""
    return PIECE.sub(lambda piece: mask(piece[0]) if piece["quoted"] else piece[0], text)


def mask(piece: str) -> str:
    """One value, in one or several quotes; line ends are kept, so that lines count on."""
    parts = list(PART.finditer(piece))
    quote, done, end = piece[0], "", 0
    for part in parts:
        if end:
            between = f" {piece[end : part.start()]} "
            done += re.sub(r"[^\n]", JOIN, between)
        done += re.sub(r"[#'\";]|\$(?!\{)", lambda found: STANDS_FOR[found[0]], part[0][1:-1])
        end = part.end()
    return f"{quote}{done}{quote}"


def unmask(value: str) -> str:
    """A value as the user wrote it, what stood in several quotes joined."""
    return re.sub(rf"{JOIN}[{JOIN}\n]*", "", value).translate(BACK)


def quote_override(text: str) -> str:
    """An override whose value has blanks, in the quotes that a shell took off."""
    path, equals, value = text.partition("=")
    named = equals and re.fullmatch(r"[^\s\[\]]+\s*", path)
    quote = '"' if "'" in value else "'"
    if not named or value.lstrip().startswith(("'", '"')) or re.fullmatch(r"\S+", value.strip()):
        return text
    return f"{path}={quote}{value.strip()}{quote}"
