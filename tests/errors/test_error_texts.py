"""What the user must read: each `*.i` beside its `*.txt`.

The first line of a file says what to call: `# call: NAME WORDS...`, a key of CALLS and its words.
"""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ingot.drivers import build_driver
from ingot.errors import IngotError, raise_if
from ingot.hit import Field, read, unknown_blocks, unknown_fields, unknown_sections
from ingot.model import build
from ingot.package.stages import advance, load
from ingot.package.target import Target
from ingot.program import prepared

HERE = Path(__file__).parent


def field_of(file: Path, section: str, block: str, name: str) -> Field:
    return read(file).require(section, block).require(name)


def options(file: Path, section: str, block: str, *known: str) -> None:
    found = read(file).require(section, block)
    raise_if([*unknown_fields(found, known), *unknown_blocks(found)])


CALLS: dict[str, Callable[[Path, Sequence[str]], object]] = {
    "read": lambda file, words: read(file, words),
    "build": lambda file, words: build(read(file), *words),
    "trace": lambda file, words: prepared(build(read(file), *words)),
    "driver": lambda file, words: build_driver(read(file), *words),
    "umat": lambda file, words: advance(load(read(file), words[0], Target(umat=True))),
    "flag": lambda file, words: field_of(file, *words).flag(),
    "integer": lambda file, words: field_of(file, *words).integer(),
    "numbers": lambda file, words: field_of(file, *words).numbers(),
    "words": lambda file, words: field_of(file, *words).words(),
    "options": lambda file, words: options(file, *words),
    "sections": lambda file, words: raise_if(unknown_sections(read(file), words)),
}


@pytest.mark.parametrize("name", sorted(file.stem for file in HERE.glob("*.i")))
def test_user_reads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    file = Path(f"{name}.i")
    call, *words = shlex.split(file.read_text().splitlines()[0].removeprefix("# call:"))
    with pytest.raises(IngotError) as raised:
        CALLS[call](file, words)
    assert str(raised.value) == Path(f"{name}.txt").read_text().rstrip("\n")


def test_every_text_belongs_to_a_file() -> None:
    assert {file.stem for file in HERE.glob("*.txt")} == {file.stem for file in HERE.glob("*.i")}
