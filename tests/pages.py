"""Blocks of a page of Markdown, and the script that runs them in the order they stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUN = ("python", "console")  # in the order of the page
SAVED = ("ini", "c")  # files, each named by a "saved as `NAME`" beside it
PLAIN = ("", "text")  # what is printed, nothing to run
FENCE = re.compile(r"```([^`\s]*)")
NORUN = re.compile(r"<!-- norun: (.+) -->")
FILE_NAME = re.compile(r"[Ss]aved\s+as\s+`([^`]+)`")
SHELL = (
    "import subprocess as _sp\n"
    "def _run(line): _sp.run(['bash', '-euo', 'pipefail', '-c', line], check=True)\n"
)


@dataclass(frozen=True)
class Block:
    """What stands between two fences; `norun` is why it is not run."""

    language: str
    body: str
    norun: str | None


def find_blocks(text: str) -> Iterator[Block]:
    """Every fenced block of a page; a comment `<!-- norun: WHY -->` acts on the next one."""
    lines, norun = iter(text.splitlines()), None
    for line in lines:
        if reason := NORUN.fullmatch(line):
            norun = reason[1]
        elif fence := FENCE.match(line):
            body = []
            while (inner := next(lines)) != "```":
                body.append(inner)
            yield Block(fence[1], "\n".join([*body, ""]), norun)
            norun = None


def saved_files(text: str) -> dict[str, str]:
    """The files that a page shows, by the names that it gives them."""
    bodies = [b.body for b in find_blocks(text) if b.language in SAVED and not b.norun]
    return dict(zip(FILE_NAME.findall(text), bodies, strict=True))


def write_script(text: str, *, commands: bool) -> str:
    """The page as one Python script, with its commands or without."""
    parts = [SHELL]
    for block in find_blocks(text):
        if block.norun:
            continue
        if block.language == "python":
            parts.append(block.body)
        elif block.language == "console" and commands:
            parts += [f"_run({line!r})\n" for line in commands_of(block)]
    return "\n".join(parts)


def commands_of(block: Block) -> list[str]:
    """The lines behind a prompt, each joined with those that a backslash leads on to."""
    joined = block.body.replace("\\\n", "")
    return [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
