"""Mutated input files: whatever a file holds, it is built or refused, and soon.

The campaign: `python -m tests.mutations 100000 --jobs 2`. Every file follows from its number, so
that `python -m tests.mutations --only 4711` prints and tries one again. An error that is no
IngotError, a file that takes longer than five seconds, and a process that dies are findings.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CASES = ROOT.parent / "shared" / "cases"
SECONDS = 5
SLOW = 1.0  # seconds, worth a look
LONGEST = 400_000  # letters: a file beyond that is cut, so that the campaign ends

NUMBERS = (
    "nan", "inf", "-inf", "1e999", "-1e999", "1e-999", "0", "-0.0", "-1", "2147483648", "1e309",
    "9" * 30, "9" * 5000, "0x10", "1_000", "1,5", "1e", "1e+", ".", "-", "+.e1", "٣", "½", "1e5000",
    "0.1e-400", "150MPa", "true", "1 2 3", "1;2", "''", "NaN", "Infinity", "1.7976931348623159e308",
)  # fmt: skip
FRAGMENTS = (
    "[", "]", "[]", "[../]", "[./x]", "[a", "=", ":=", ":override=", "'", '"', "'''", '"""', "#",
    "${", "}", "${}", "${x}", "${fparse 1/0}", "${fparse 9^9^9^9}", "${fparse (((((1)))))}",
    "${raw a b}", "${raw ${raw ${raw a}}}", "${units 1 m -> s}", "${units 1 m^9999 -> m^9999}",
    "${env HOME}", "${replace x}", "${fparse if(1,2,3)}", "!include x.i", "!include .",
    "!include /dev/zero", "!include", ";", ",", "\\", "\0", "\x01", "\x05", "\r", "\r\n", "\t",
    "\ufeff", "\u2028", "é", "😀", "ſ", "\ud7ff", "$", "{", "~1", "~", "/", "//", "..", "%s", "{0}",
    "*", "!", "type = ", "active = ''", "inactive = 'x'", "[Models]", "[Tensors]", "[Drivers]",
    "[Domain]", "[Settings]", "[GlobalParams]", "&", "|", "^", "a/b = 1", "/a = 1", "a/ = 1",
)  # fmt: skip
TOKEN = re.compile(r"\s+|[A-Za-z_][\w.~]*|[-+]?\d[\w.+-]*|.", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Original:
    """A file that others are made of: where it lies, and what it says."""

    path: Path
    text: str


@dataclasses.dataclass
class Corpus:
    """The originals, and their tokens, lines and blocks."""

    originals: tuple[Original, ...]
    readable: tuple[Original, ...]
    words: tuple[str, ...]
    lines: tuple[str, ...]
    blocks: tuple[str, ...]


def corpus() -> Corpus:
    """The project's own files, and the published ones where they lie beside the checkout."""
    folders = [
        ROOT / "examples",
        ROOT / "tests" / "errors",
        ROOT / "tests" / "fields" / "inputs",
        CASES,
    ]
    files = sorted(file for folder in folders for file in folder.rglob("*.i"))
    originals = tuple(Original(f, f.read_text(errors="replace")) for f in files)
    lines = sorted({line for o in originals for line in o.text.split("\n") if line.strip()})
    words = sorted({word for line in lines for word in TOKEN.findall(line) if word.strip()})
    blocks = sorted(
        {b for o in originals for b in re.findall(r"(?m)^  \[\w+\]\n(?:.*\n)*?  \[\]\n", o.text)}
    )
    readable = tuple(
        o
        for o in originals
        if o.path.parent.name != "errors" or o.path.name.startswith(("build", "driver", "trace"))
    )
    return Corpus(originals, readable, tuple(words), tuple(lines), tuple(blocks))


# mutations


def _letters(text: str, draw: random.Random, known: Corpus) -> str:
    at = draw.randrange(len(text) + 1)
    end = min(len(text), at + draw.choice((0, 0, 1, 1, 2, 5, 40)))
    other = "".join(
        chr(draw.choice((draw.randrange(128), draw.randrange(0xD7FF))))
        for _ in range(draw.randrange(4))
    )
    return text[:at] + other + text[end:]


def _tokens(text: str, draw: random.Random, known: Corpus) -> str:
    tokens = TOKEN.findall(text) or [""]
    at = draw.randrange(len(tokens))
    deed = draw.randrange(5)
    if deed == 0:
        tokens[at] = draw.choice(known.words)
    elif deed == 1:
        tokens[at] = draw.choice(FRAGMENTS)
    elif deed == 2:
        del tokens[at]
    elif deed == 3:
        other = draw.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    else:
        tokens.insert(at, tokens[draw.randrange(len(tokens))])
    return "".join(tokens)


def _numbers(text: str, draw: random.Random, known: Corpus) -> str:
    places = list(
        re.finditer(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])", text)
    )
    if not places:
        return text
    place = draw.choice(places)
    return text[: place.start()] + draw.choice(NUMBERS) + text[place.end() :]


def _long(draw: random.Random) -> str:
    """An expression without an end, nearly."""
    depth = draw.choice((10, 100, 1000, 10000))
    return draw.choice((
        "(" * depth + "c" + ")" * depth, "+".join(["c"] * depth), "-" * depth + "c",
        "^".join(["c"] * depth), "sin(" * depth + "c" + ")" * depth, "9^9^9^9^c", "c " * depth,
        "*".join(["c", "1e300"] * depth), "c,".join(["if(c,"] * depth), "a:=c;" * depth + "a",
        "!" * depth + "c",
    ))  # fmt: skip


def _values(text: str, draw: random.Random, known: Corpus) -> str:
    places = list(re.finditer(r"(?m)(?<==)[ \t]*[^\n#]*$", text))
    if not places:
        return text
    place = draw.choice(places)
    other = draw.choice((*NUMBERS, *FRAGMENTS, "", "a", "'a b'", draw.choice(known.words)))
    if draw.random() < 0.1:
        other = f"'{_long(draw)}'"
    return f"{text[: place.start()]} {other}{text[place.end() :]}"


def _lines(text: str, draw: random.Random, known: Corpus) -> str:
    lines = text.split("\n")
    at = draw.randrange(len(lines))
    deed = draw.randrange(5)
    if deed == 0:
        del lines[at]
    elif deed == 1:
        lines.insert(at, draw.choice(lines))
    elif deed == 2:
        lines.insert(at, draw.choice(known.lines))
    elif deed == 3:
        lines[at] = draw.choice(known.lines)
    else:
        other = draw.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


def _blocks(text: str, draw: random.Random, known: Corpus) -> str:
    found = list(re.finditer(r"(?m)^ *\[\w+\]\n(?:.*\n)*?^ *\[\]\n", text))
    if not found:
        return text
    place = draw.choice(found)
    other = draw.choice(("", place[0] * 2, draw.choice(known.blocks), draw.choice(found)[0]))
    return text[: place.start()] + other + text[place.end() :]


def _splice(text: str, draw: random.Random, known: Corpus) -> str:
    other = draw.choice(known.originals).text
    return text[: draw.randrange(len(text) + 1)] + other[draw.randrange(len(other) + 1) :]


def _cut(text: str, draw: random.Random, known: Corpus) -> str:
    return text[: draw.randrange(len(text) + 1)]


def _renamed(text: str, draw: random.Random, known: Corpus) -> str:
    """One word another everywhere: names that clash, refer to themselves or to nothing."""
    words = sorted(set(re.findall(r"[A-Za-z_]\w*", text)))
    if not words:
        return text
    return re.sub(
        rf"\b{draw.choice(words)}\b",
        draw.choice((*words, draw.choice(known.words))).replace("\\", ""),
        text,
    )


def _deep(text: str, draw: random.Random, known: Corpus) -> str:
    depth = draw.choice((3, 30, 300, 3000))
    deep = draw.choice((
        "[a]\n" * depth + "x = 1\n" + "[]\n" * depth,
        "[a]\n" * depth,
        "x = ${fparse " + "(" * depth + "1" + ")" * depth + "}\n",
        "x = ${fparse " + "+".join(["1"] * depth) + "}\n",
        "x = ${fparse " + "-" * depth + "1}\n",
        "x = ${fparse " + "^".join(["2"] * depth) + "}\n",
        "x = ${fparse " + "sin(" * depth + "1" + ")" * depth + "}\n",
        "x = '" + "${raw " * depth + "a" + "}" * depth + "'\n",
        "x = " + "${" * depth + "\n",
        "".join(f"v{i} = ${{v{i + 1}}}\n" for i in range(depth)) + f"v{depth} = 1\n",
        "".join(f"w{i} = '${{w{i + 1}}}${{w{i + 1}}}'\n" for i in range(depth)) + f"w{depth} = 1\n",
        "".join(f"u{i} = ${{fparse u{i + 1} + 1}}\n" for i in range(depth)) + f"u{depth} = 1\n",
        "x = '" + "1 " * depth + "'\n",
        "a/" * depth + "x = 1\n",
    ))  # fmt: skip
    lines = text.split("\n")
    lines.insert(draw.randrange(len(lines) + 1), deep)
    return "\n".join(lines)


def _ends(text: str, draw: random.Random, known: Corpus) -> str:
    return draw.choice((
        lambda: text.replace("\n", "\r\n"), lambda: text.replace("\n", "\r"),
        lambda: "\ufeff" + text, lambda: text.replace(" ", "\t"), lambda: text.replace("\n", " "),
        lambda: text.rstrip("\n"), lambda: text.replace(" ", "\u00a0"), lambda: text.upper(),
    ))()  # fmt: skip


MUTATIONS: tuple[Callable[[str, random.Random, Corpus], str], ...] = (
    _letters, _letters, _tokens, _tokens, _tokens, _numbers, _numbers, _values, _values, _values,
    _lines, _lines, _blocks, _blocks, _renamed, _renamed, _splice, _cut, _deep, _ends,
)  # fmt: skip


def mutated(number: int, known: Corpus) -> tuple[Original, str, tuple[str, ...], bool]:
    """The original, text, overrides and kind (whether MOOSE's) of the file with that number."""
    draw = random.Random(number)
    original = draw.choice(known.originals if draw.random() < 0.1 else known.readable)
    text = original.text
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        text = draw.choice(MUTATIONS)(text, draw, known)[:LONGEST]
    overrides: tuple[str, ...] = ()
    if draw.random() < 0.05:
        line = draw.choice(known.lines).strip()
        overrides = (
            draw.choice((line, f"Models/{line}", line.replace("=", ":="), draw.choice(FRAGMENTS))),
        )
    moose = (re.search(r"^\[Domain\]", text, re.MULTILINE) is not None) != (draw.random() < 0.02)
    return original, text, overrides, moose


# trying one


class Hang(BaseException):
    """The time for one file is over."""


def built(text: str, original: Original, overrides: tuple[str, ...], *, moose: bool) -> str:
    """Read the text and build all that it holds; `built`, or `refused` where anything was."""
    from ingot.drivers import build_driver
    from ingot.errors import IngotError
    from ingot.fields import build as build_simulation
    from ingot.hit import read_text
    from ingot.model import Factory

    try:
        tree = read_text(text, "mutated.i", overrides, moose=moose)
    except IngotError as error:
        str(error)
        return "unread"
    tree = dataclasses.replace(tree, file=original.path)
    if moose:
        return attempt(lambda: build_simulation(tree, untrusted=True))
    try:
        factory = Factory(tree, untrusted=True)
    except IngotError as error:
        str(error)
        return "refused"
    ends = [attempt(lambda name=name: factory.model(name)) for name in tree.names("Models")]
    ends += [attempt(lambda name=name: factory.data(name)) for name in tree.names("Data")]
    ends += [
        attempt(lambda name=name: build_driver(factory, name)) for name in tree.names("Drivers")
    ]
    return "refused" if "refused" in ends else "built"


def attempt(build: Callable[[], object]) -> str:
    """Whether something was built; the text of its error must be there too."""
    from ingot.errors import IngotError

    try:
        build()
    except IngotError as error:
        str(error)
        return "refused"
    return "built"


def outcome(number: int, known: Corpus) -> tuple[str, str]:
    """How the file of that number ends, and the traceback where it should not have."""
    original, text, overrides, moose = mutated(number, known)
    os.chdir(original.path.parent)

    def stop(*_: object) -> None:
        raise Hang

    # Of its own time, on a machine that others use too; and of the clock, should it wait.
    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(20 * SECONDS)
    start = time.process_time()
    try:
        end = built(text, original, overrides, moose=moose)
        seconds = time.process_time() - start
        return end, f"{original.path}\n{seconds:.1f} s" if seconds > SLOW else ""
    except Hang:
        return "hang", f"{original.path}\n" + "".join(traceback.format_exc(limit=-8))
    except Exception:
        return "traceback", f"{original.path}\n" + "".join(traceback.format_exc(limit=-4))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


# the campaign


def work(numbers: range, now: Any, results: Any, known: Corpus) -> None:
    """Try files one after another; `now` says which, should the process die of it."""
    warnings.simplefilter("ignore")
    import logging

    import torch

    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    limit = 8 << 30  # bytes: a file that asks for more is a finding, not the end of the machine
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for original in known.originals[:: len(known.originals) // 8 or 1]:
        # what torch and the rooms import at first use is no file's fault
        os.chdir(original.path.parent)
        with contextlib.suppress(Exception):
            built(original.text, original, (), moose=False)
    ends: collections.Counter[str] = collections.Counter()
    for done, number in enumerate(numbers, 1):
        now.value = number
        end, told = outcome(number, known)
        ends[end] += 1
        if told:
            results.put((number, end, told))
        if done % 50 == 0 or done == len(numbers):
            results.put((number, "counts", dict(ends)))
            ends.clear()


def campaign(numbers: range, jobs: int, found: Callable[[int, str, str], None]) -> dict[str, int]:
    """How many files end in which way; each that should not have is told to `found`."""
    known = corpus()
    context = multiprocessing.get_context("fork")
    total: collections.Counter[str] = collections.Counter()
    parts = [numbers[i::jobs] for i in range(jobs)]
    results = context.Queue()
    running: dict[int, Any] = {}

    def start(index: int, rest: range) -> None:
        if len(rest):
            now = context.Value("q", rest[0])
            process = context.Process(target=work, args=(rest, now, results, known))
            process.start()
            running[index] = (process, now, rest)

    for index, part in enumerate(parts):
        start(index, part)
    while running or not results.empty():
        try:
            number, end, told = results.get(timeout=1)
        except Exception:
            for index, (process, now, rest) in list(running.items()):
                if process.is_alive():
                    continue
                del running[index]
                if process.exitcode != 0:
                    total["crash"] += 1
                    found(now.value, "crash", f"exit code {process.exitcode}")
                    start(index, rest[rest.index(now.value) + 1 :])
            continue
        if end == "counts":
            total.update(told)
            print(f"\r{total.total()} {dict(total)}", end="", file=sys.stderr, flush=True)
        else:
            found(number, end, told)
    return dict(total)


def main() -> None:
    """The command line of the campaign."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("count", type=int, nargs="?", default=1000)
    arguments.add_argument("--first", type=int, default=0, help="the number of the first file")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--only", type=int, help="print and try one file")
    arguments.add_argument(
        "--out", type=Path, help="where findings are written, a line of JSON each"
    )
    asked = arguments.parse_args()
    if asked.only is not None:
        known = corpus()
        original, text, overrides, moose = mutated(asked.only, known)
        print(text, overrides, moose, original.path, sep="\n")
        print(*outcome(asked.only, known), sep="\n")
        return
    out = asked.out.resolve() if asked.out else None

    def found(number: int, end: str, told: str) -> None:
        if out is None:
            print(f"\n{number} {end}\n{told}")
        else:
            with out.open("a") as stream:
                print(json.dumps({"number": number, "end": end, "told": told}), file=stream)

    print(campaign(range(asked.first, asked.first + asked.count), asked.jobs, found))


if __name__ == "__main__":
    main()
