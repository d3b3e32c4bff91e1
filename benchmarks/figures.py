"""Measured numbers of the pages: `python -m benchmarks.figures` takes them from benchmarks/results.

A page holds `<!-- table: NAME -->` before a table and `<!-- end -->` behind it, and in its lines
`<!-- NAME.key -->NUMBER<!-- end -->`; what stands between is replaced, the rest is the page's own.
"""

import datetime
import json
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
NUMBER = re.compile(r"(<!-- ([\w-]+)\.([\w-]+) -->)[^<]*(<!-- end -->)")
RIGHT = re.compile(r"[-+\d.e ]*|failed")

Cell = float | int | str | None


def main() -> None:
    """Fill in every page."""
    for page in pages():
        text = page.read_text()
        if (filled := fill(text)) != text:
            page.write_text(filled)


def pages() -> list[Path]:
    """The pages that may hold numbers."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def fill(text: str) -> str:
    """A page with the numbers of the results."""
    text = TABLE.sub(lambda at: f"{at[1]}{format_table(read_result(at[2]))}\n{at[3]}", text)
    return NUMBER.sub(lambda at: f"{at[1]}{read_result(at[2])['values'][at[3]]}{at[4]}", text)


def read_result(name: str, folder: Path | None = None) -> dict[str, Any]:
    """A result: when, where and by what it was taken; columns and rows, or values by name."""
    return json.loads(((folder or RESULTS) / f"{name}.json").read_text())


def format_table(result: Mapping[str, Any]) -> str:
    """Markdown, with columns of numbers to the right."""
    columns, rows = result["columns"], result["rows"]
    sides = ["--:" if all(RIGHT.fullmatch(row[at]) for row in rows) else "---"
             for at in range(len(columns))]  # fmt: skip
    lines = [columns, *rows]
    head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, f"|{'|'.join(sides)}|", *body])


def write_result(
    folder: Path, name: str, command: str, columns: Sequence[str] = (),
    rows: Iterable[Sequence[Cell]] = (), values: Mapping[str, Cell] | None = None,
    machine: str = "",
) -> None:  # fmt: skip
    """Store what a script has measured, as it is shown, with the day and the machine."""
    content = {
        "taken": datetime.date.today().strftime("%-d %B %Y"),
        "machine": machine or f"{platform.system()} {platform.machine()}",
        "command": command,
        "columns": list(columns),
        "rows": [[show(cell) for cell in row] for row in rows],
        "values": {key: show(value) for key, value in (values or {}).items()},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def show(cell: Cell) -> str:
    """A cell of a table: three digits of a measured number, nothing where none was taken."""
    return "" if cell is None else f"{cell:.3g}" if isinstance(cell, float) else str(cell)


if __name__ == "__main__":
    main()
