"""What a prompt or a notebook shows of a model, an artifact or a driver: a title and rows."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

__all__ = ["Card", "Row", "show_html", "show_text"]


class Row(NamedTuple):
    """What a thing is to its owner, what it is called, and what it is."""

    role: str
    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Card:
    """A title, rows, and for a notebook a picture, an SVG."""

    title: str
    rows: tuple[Row, ...]
    draw: Callable[[], str] | None = None

    def text(self) -> str:
        """A line for each row."""
        return "\n".join([self.title, *(f"  {r.role}  {r.name}: {r.what}" for r in self.rows)])

    def html(self) -> str:
        """A table, and the picture where there is one."""
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{escape(x)}</td>' for x in row) + "</tr>"
            for row in self.rows
        )
        svg = self.draw() if self.draw is not None else ""
        picture = f"<details><summary>wiring</summary>{svg}</details>" if svg else ""
        return f"<div><b>{escape(self.title)}</b><table>{body}</table>{picture}</div>"


def show_text(shown: Any, card: Callable[[], Card]) -> str:
    """The text of a card; of one that cannot be made, why: to look at a thing never fails."""
    try:
        return card().text()
    except Exception as error:
        return _tell_broken(shown, error)


def show_html(shown: Any, card: Callable[[], Card]) -> str:
    """The same as HTML, without its picture where that alone cannot be drawn."""
    try:
        made = card()
        try:
            return made.html()
        except Exception:
            return Card(made.title, made.rows).html()
    except Exception as error:
        return f"<div>{escape(_tell_broken(shown, error))}</div>"


def _tell_broken(shown: Any, error: Exception) -> str:
    name = vars(shown).get("name")
    title = type(shown).__name__ + (f" [{name}]" if isinstance(name, str) else "")
    return f"{title}, which cannot be shown: {type(error).__name__}: {error}"
