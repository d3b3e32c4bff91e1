"""`ingot doctor`: what is installed here, and what each missing part costs."""

import json as jsonlib
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ingot.errors import IngotError
from ingot.extras import PURPOSES

__all__ = ["doctor"]

PYTHON = (3, 11)
PROBE = 'extern "C" double twice(double x) { return 2 * x; }\n'


@dataclass(frozen=True, slots=True)
class Check:
    """One part: what was found of it; cost and fix are told where it is missing."""

    part: str
    ok: bool
    found: str
    cost: str = ""
    fix: str = ""
    needed: bool = False


def doctor(*, json: bool = False) -> int:
    """Look at what Ingot needs here, and tell what each missing part costs.

    The exit code is 0 where all that is needed is there, and 1 where something is not; what is
    optional, a GPU or an extra, may be missing.

    Example: ingot doctor --json

    Parameters
    ----------
    json
        Print the checks as JSON.
    """
    checks = list(_check_all())
    if json:
        print(jsonlib.dumps({"ready": _is_ready(checks), "checks": [asdict(c) for c in checks]}))
    else:
        print(_format(checks))
    return 0 if _is_ready(checks) else 1


def _is_ready(checks: list[Check]) -> bool:
    return all(check.ok for check in checks if check.needed)


def _format(checks: list[Check]) -> str:
    width = max(len(check.part) for check in checks)
    lines = []
    for check in checks:
        mark = "ok" if check.ok else "MISSING" if check.needed else "-"
        lines.append(f"{mark:<8}{check.part:<{width}}  {check.found}")
        if not check.ok:
            lines.append(f"{'':<8}{'':<{width}}  without it, {check.cost}")
            lines.append(f"{'':<8}{'':<{width}}  to have it, {check.fix}")
    ready = "all that is needed is here" if _is_ready(checks) else "something that is needed is not"
    return "\n".join([*lines, "", ready])


def _check_all() -> Iterator[Check]:
    from ingot import __version__

    yield Check("ingot", True, f"{__version__}, {Path(__file__).parents[1]}", needed=True)
    yield _check_python()
    requirements = _read_requirements()
    yield from (_check_package(name, bounds) for name, bounds, extra in requirements if not extra)
    yield _check_compiler()
    yield _check_gpu()
    yield _check_nvrtc()
    yield _check_cache()
    yield from _check_extras(requirements)


def _check_python() -> Check:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    least = ".".join(map(str, PYTHON))
    ok = sys.version_info[:2] >= PYTHON
    return Check("python", ok, found, "nothing runs", f"install Python {least} or newer", True)


def _read_requirements() -> list[tuple[str, str, str]]:
    """Name, bounds and extra of everything that the installed package asks for."""
    from importlib import metadata

    try:
        told = metadata.requires("ingot") or []
    except metadata.PackageNotFoundError:  # run from its source
        return []
    rows = (re.match(r"([\w.-]+)\s*([^;]*?)\s*(?:;.*extra == ['\"]([\w-]+)['\"].*)?$", row)
            for row in told)  # fmt: skip
    return [(row[1], row[2], row[3] or "") for row in rows if row]


def _check_package(name: str, bounds: str) -> Check:
    version = _read_version(name)
    fix = f"pip install '{name}{bounds}'"
    if version is None:
        return Check(name, False, "not installed", "Ingot does not run", fix, True)
    cost = "Ingot was not run with this version"
    return Check(name, _lies_within(version, bounds), f"{version}, of {bounds}", cost, fix, True)


def _read_version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _lies_within(version: str, bounds: str) -> bool:
    """Whether a version meets bounds such as `>=2.11,<2.16`, by its numbers."""
    here = _numbers(version)
    for operator, bound in re.findall(r"(>=|<=|==|<|>)\s*([\w.]+)", bounds):
        there = _numbers(bound)
        size = max(len(here), len(there))
        a, b = ([*numbers, *[0] * size][:size] for numbers in (here, there))
        met = {">=": a >= b, "<=": a <= b, "==": a == b, "<": a < b, ">": a > b}
        if not met[operator]:
            return False
    return True


def _numbers(version: str) -> list[int]:
    parts = (re.match(r"\d+", part) for part in version.partition("+")[0].split("."))
    return [int(part[0]) for part in parts if part]


def _check_compiler() -> Check:
    """Compile a line, whatever the cache holds, and call it."""
    import ctypes

    from ingot.codegen import compiler
    from ingot.codegen.build import compile_library
    from ingot.codegen.library import open_library

    cost = "no kernels and no packages: ingot run --backend interpret runs all, slower"
    fix = "install g++"
    try:
        found, begun = f"{compiler.find_compiler()}, {compiler.read_version()}", time.monotonic()
        with tempfile.TemporaryDirectory(prefix="ingot-") as scratch:
            twice = open_library(compile_library(PROBE, folder=Path(scratch))).twice
        twice.restype, twice.argtypes = ctypes.c_double, (ctypes.c_double,)
        works = twice(21.0) == 42.0
    except (IngotError, OSError) as error:
        told = str(error).splitlines()[0]
        return Check("compiler", False, told, cost, fix, True)
    seconds = time.monotonic() - begun
    return Check("compiler", works, f"{found}, compiles in {seconds:.1f} s", cost, fix, True)


def _check_gpu() -> Check:
    import torch

    cost = "--device cuda is refused, everything runs on the CPU"
    fix = "install NVIDIA's driver for it, and a torch with CUDA"
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return Check("GPU", True, f"{', '.join(names)}; its driver runs CUDA {_read_driver()}")
    built = torch.backends.cuda.is_built()
    why = "torch finds none" if built else "torch was built without CUDA"
    return Check("GPU", False, f"none: {why}", cost, fix)


def _read_driver() -> str:
    """The newest CUDA that the driver runs."""
    import ctypes

    from ingot.codegen.cuda import open_driver

    version = ctypes.c_int()
    open_driver().cuDriverGetVersion(ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def _check_nvrtc() -> Check:
    from ingot.codegen import nvrtc

    cost = "ingot compile --device cuda is refused, and kernels do not run on GPUs"
    try:
        return Check("NVRTC", True, nvrtc.read_version())
    except IngotError as error:
        problem = error.problems[0]
        return Check("NVRTC", False, problem.message, cost, problem.fix or nvrtc.INSTALL)


def _check_cache() -> Check:
    from ingot.codegen.cache import open_cache

    kept = open_cache()
    cost = "what is compiled is compiled again by every process"
    fix = f"make {kept.folder} writable, or name another place by XDG_CACHE_HOME"
    try:
        kept.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=kept.folder) as stream:
            stream.write(b"0")
    except OSError as error:
        return Check("cache", False, f"{kept.folder}: {error.strerror}", cost, fix)
    size = sum(entry.size for entry in kept.entries())
    found = f"{kept.folder}: {size / 2**20:.0f} of at most {kept.limit / 2**20:.0f} MiB"
    return Check("cache", True, found)


def _check_extras(requirements: list[tuple[str, str, str]]) -> Iterator[Check]:
    extras: dict[str, list[tuple[str, str]]] = {}
    for name, bounds, extra in requirements:
        if extra:
            extras.setdefault(extra, []).append((name, bounds))
    for extra, packages in extras.items():
        versions = {name: _read_version(name) for name, _ in packages}
        wrong = [
            f"{name} {versions[name] or 'is not installed'}"
            for name, bounds in packages
            if not _lies_within(versions[name] or "0", bounds)
        ]
        found = ", ".join(wrong or (f"{name} {v}" for name, v in versions.items()))
        cost = f"not possible: {PURPOSES[extra]}"
        yield Check(f"[{extra}]", not wrong, found, cost, f"pip install 'ingot[{extra}]'")
