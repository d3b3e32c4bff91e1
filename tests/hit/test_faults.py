"""A forgotten [] is told at the block that it should have closed."""

from pathlib import Path

import pytest

from ingot.errors import IngotError
from ingot.hit import read_text
from ingot.hit.source import Source, outline

CASES = Path(__file__).parents[3] / "shared" / "cases"
FILES = sorted(CASES.glob("neml2/**/*.i"))


def find_ends(text: str) -> list[tuple[int, int]]:
    """The line of every block's header and of its []."""
    source, opened, ends = Source("", text), list[int](), list[tuple[int, int]]()
    for mark, _ in outline(text):
        line = source.span(mark.start(), 1).line
        if mark["open"]:
            opened.append(line)
        elif mark["close"]:
            ends.append((opened.pop(), line))
    return ends


def told_line(text: str, without: int) -> int:
    lines = text.splitlines(keepends=True)
    lines[without - 1] = "\n"
    with pytest.raises(IngotError) as raised:
        read_text("".join(lines))
    (problem,) = raised.value.problems
    assert problem.span is not None
    assert problem.fix is not None
    return problem.span.line


def assert_told_where_forgotten(file: Path, step: int) -> None:
    text = file.read_text()
    for header, end in find_ends(text)[::step]:
        assert told_line(text, end) == header, f"{file}:{end}"


@pytest.mark.skipif(not FILES, reason="the published cases are not here")
@pytest.mark.parametrize("file", FILES[::35], ids=lambda file: file.stem)
def test_a_forgotten_end_is_told_where_it_was_forgotten(file: Path) -> None:
    assert_told_where_forgotten(file, 5)


@pytest.mark.exhaustive
@pytest.mark.skipif(not FILES, reason="the published cases are not here")
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CASES)))
def test_any_forgotten_end_is_told_where_it_was_forgotten(file: Path) -> None:
    assert_told_where_forgotten(file, 1)
