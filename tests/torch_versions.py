"""The suite under every version of torch that Ingot allows: builds environments, prints a table.

`python -m tests.torch_versions [ROOM ...]` takes rooms of tests/ (all by default), each in a
process of its own. An environment takes about 6 GB, is built once and kept in `--folder`, where
what pytest says is found too.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
VERSIONS = ("2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
TOOLS = ("basedpyright", "ruff")
"""What the suite does not need."""


@dataclass
class Row:
    """What the suite gave under one version; failures by the name that pytest takes."""

    torch: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def pins(version: str) -> list[str]:
    """The pinned requirements, torch excepted."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    known = [line for line in lines if line and not line.startswith("#")]
    others = [line for line in known if line.split("==")[0] not in (*TOOLS, "torch")]
    return [*others, f"torch=={version}"]


def environment(version: str, folder: Path) -> Path:
    """The Python of an environment with a version of torch, built unless it is there."""
    place = folder / version
    python = place / "bin" / "python"
    if not (place / ".ready").exists():
        print(f"torch {version}: building {place}", file=sys.stderr)
        venv.create(place, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", *pins(version)]
        subprocess.run(install, check=True)
        (place / ".ready").touch()
    # this checkout, also for the processes that tests start with an environment of their own
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "ingot.pth").write_text(f"{ROOT / 'src'}\n")
    return python


def rooms(names: Sequence[str]) -> list[str]:
    """Folders and files of tests, as pytest takes them."""
    if names:
        return [f"tests/{name.removeprefix('tests/')}" for name in names]
    files = (ROOT / "tests").rglob("test_*.py")
    return sorted({"/".join(file.relative_to(ROOT).parts[:2]) for file in files})


def run_room(python: Path, room: str, row: Row, options: argparse.Namespace) -> None:
    """Add what a room gives to a row; a process that dies or runs too long is a failure."""
    with tempfile.TemporaryDirectory() as scratch:
        report, ended = Path(scratch) / "report.xml", None
        words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", room]
        words.append(f"--junitxml={report}")
        words += ["-n", str(options.jobs)] if options.jobs else []
        words += ["-m", options.marks] if options.marks else []
        given = {**os.environ, "OMP_NUM_THREADS": "1"}
        log = options.folder / f"{row.torch}-{room.replace('/', '-')}.log"
        with log.open("w") as said, suppress(subprocess.TimeoutExpired):
            ended = subprocess.run(
                words, cwd=ROOT, env=given, stdout=said, timeout=options.limit
            ).returncode
        if report.exists():
            add_report(report, row)
        if not report.exists() or ended is None or ended not in (0, 1, 5):
            how = f"took more than {options.limit} s" if ended is None else f"ended with {ended}"
            row.failed += 1
            row.failures.append(f"{room} ({how})")


def add_report(report: Path, row: Row) -> None:
    """Count the tests that pytest reported."""
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            row.failed += 1
            name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
            row.failures.append(name)
        elif "skipped" in kinds:
            row.skipped += 1
        else:
            row.passed += 1


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as Markdown."""
    yield "| torch | passed | failed | skipped | failures |"
    yield "|---|---|---|---|---|"
    for row in rows:
        names = ", ".join(f"`{name}`" for name in row.failures)
        yield f"| {row.torch} | {row.passed} | {row.failed} | {row.skipped} | {names} |"


def allowed(version: str) -> bool:
    """Whether pyproject.toml allows a version."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (bounds,) = re.findall(r"torch>=([\d.]+),<([\d.]+)", " ".join(wanted))
    low, high = ([int(n) for n in bound.split(".")] for bound in bounds)
    return low <= [int(n) for n in version.split(".")] < high


def main() -> None:
    """Run the rooms under each version and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.torch_versions", description=__doc__)
    parser.add_argument("rooms", nargs="*", help="as in tests/, for example: train fields/jit")
    parser.add_argument("--versions", nargs="+", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--folder", type=Path, default=ROOT / ".torch", help="of environments")
    parser.add_argument("--jobs", type=int, default=0, help="processes of pytest-xdist")
    parser.add_argument("--limit", type=int, default=3600, help="seconds for a room")
    parser.add_argument("--marks", default="", help="as pytest's -m")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    rows = []
    for version in options.versions:
        assert allowed(version), f"pyproject.toml excludes torch {version}"
        python = environment(version, options.folder)
        row = Row(version)
        begun = time.perf_counter()
        for room in rooms(options.rooms):
            run_room(python, room, row, options)
            told = f"torch {version}: {room}, {row.passed} passed, {row.failed} failed so far"
            print(told, file=sys.stderr)
        row.seconds = round(time.perf_counter() - begun, 1)
        rows.append(row)
    as_json = json.dumps([asdict(row) for row in rows], indent=2)
    print(as_json if options.json else "\n".join(table(rows)))


if __name__ == "__main__":
    main()
