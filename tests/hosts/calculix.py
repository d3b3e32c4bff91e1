"""CalculiX with a package linked in: builds it, writes jobs, runs them, reads what they print."""

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "FINITE", "FOLDER", "OURS", "Job", "Mesh", "compile_finite", "compile_j2", "is_there", "link",
    "mesh_block", "run", "write_bar", "write_job",
]  # fmt: skip

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".hosts" / "calculix"
"""Where `make hosts` has built CalculiX: its objects, and the archive of all but the main one."""
VERSION = "2.20"
LIBRARIES = ("-lspooles", "-larpack", "-llapack", "-lblas", "-lpthread", "-lm")

TIMER = """
#include <stdio.h>
#include <time.h>
#define EACH(X) X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h) X(i) X(j) X(k) X(l) X(m) X(n) X(o) X(p) \\
  X(q) X(r) X(s) X(t) X(u) X(v) X(w) X(x) X(y) X(z) X(aa) X(ab) X(ac) X(ad) X(ae) X(af) X(ag) \\
  X(ah) X(ai) X(aj)
#define TAKES(x) void *x,
#define GIVES(x) x,
extern void PREFIX_umat(EACH(TAKES) void *);
static double spent;
static long calls;
__attribute__((destructor)) static void tell(void) {
  printf("umat %ld calls %.6f s\\n", calls, spent);
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
void umat_(EACH(TAKES) void *last) {
  const double start = now();
  PREFIX_umat(EACH(GIVES) last);
  spent += now() - start;
  ++calls;
}
"""
"""An `umat_` of the program's own, which is called instead of the library's: it takes the time."""


def is_there() -> bool:
    """Whether CalculiX has been built."""
    return (FOLDER / f"ccx_{VERSION}.a").exists() and (FOLDER / f"ccx_{VERSION}.o").exists()


def compile_j2(folder: Path) -> Path:
    """The folder of a package of J2 plasticity as a user material."""
    from ingot import compile_model, read
    from ingot.package.target import Target

    parameters = ("yield.yield_stress", "hardening.hardening_modulus")
    target = Target(output_dir=folder, umat=True, baseline=False, parameter=parameters)
    return compile_model(read(HERE / "j2.i"), "j2", target).folder


def compile_finite(file: Path, name: str, folder: Path, **options: Any) -> Path:
    """The same of a model of a file at finite strain, without constants."""
    from ingot import compile_model, read
    from ingot.package.target import Target

    place = folder / f"{name}.i"
    wrapped = f"[Models]\n[finite]\ntype = LogarithmicStrain\nmodel = '{name}'\n[]\n[]\n"
    place.write_text(file.read_text() + wrapped)
    given = {"umat_host": "calculix", **options}
    target = Target(output_dir=folder, umat=True, baseline=False, **given)
    return compile_model(read(place), "finite", target).folder


def link(package: Path, program: Path, *, timed: bool = False) -> Path:
    """CalculiX with the user material of a package in the place of its own."""
    library = sorted(package.glob("*.so"))[0].resolve()
    objects: list[str] = [str(FOLDER / f"ccx_{VERSION}.o")]
    if timed:
        symbols = subprocess.run(
            ["nm", "-D", str(library)], capture_output=True, text=True, check=True
        ).stdout.split()
        prefix = next(s for s in symbols if s.endswith("_umat")).removesuffix("_umat")
        source = program.with_suffix(".c")
        source.write_text(TIMER.replace("PREFIX", prefix))
        objects.append(str(source))
    # before the archive and needed from the start, so that nobody asks for the archive's own umat
    objects += ["-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}"]
    objects += [str(FOLDER / f"ccx_{VERSION}.a")]
    command = ["gfortran", "-O2", "-w", "-fopenmp", *objects, *LIBRARIES, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


@dataclass(frozen=True)
class Job:
    """What a job gave: displacements of nodes, stresses at points, what it took and printed.

    busy: seconds of processors, which tell more than those of a clock where others compute too
    """

    displacements: np.ndarray
    stresses: np.ndarray
    seconds: float
    busy: float
    text: str


BUILT_IN = """*MATERIAL, NAME=STEEL
*ELASTIC
200000., 0.3
*PLASTIC
200., 0.
20200., 10.
"""
FINITE = """*MATERIAL, NAME=ABAQUS_FINITE
*USER MATERIAL, CONSTANTS=1
0.
*DEPVAR
20
"""
OURS = """*MATERIAL, NAME=ABAQUS_STEEL
*USER MATERIAL, CONSTANTS=2
200., 2000.
*DEPVAR
8
"""


@dataclass(frozen=True)
class Mesh:
    """Points, and elements of a type as CalculiX numbers their nodes."""

    points: np.ndarray
    elements: np.ndarray
    kind: str = "C3D8"


def mesh_block(cells: Sequence[int], size: Sequence[float]) -> Mesh:
    """A block of equal C3D8 elements."""
    axes = [np.linspace(0.0, length, n + 1) for length, n in zip(size, cells, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3, order="C")
    first = np.stack(np.meshgrid(*map(np.arange, cells), indexing="ij"), -1).reshape(-1, 1, 3)
    corners = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
    corners += [(i, j, 1) for i, j, _ in corners]
    steps = np.array([(cells[1] + 1) * (cells[2] + 1), cells[2] + 1, 1])
    return Mesh(points, (first + np.array(corners)) @ steps)


def write_bar(
    file: Path, cells: Sequence[int], size: Sequence[float], pull: Sequence[float], *,
    ours: bool, increments: int = 4,
) -> None:  # fmt: skip
    """A bar of C3D8 elements, held at one end, whose other end is moved in equal increments."""
    mesh = mesh_block(cells, size)
    ends = [np.flatnonzero(np.abs(mesh.points[:, 0] - x) < 1e-9) for x in (0.0, size[0])]
    moved = {(int(n), d): 0.0 for n in ends[0] for d in range(3)}
    moved |= {(int(n), d): pull[d] for n in ends[1] for d in range(3)}
    write_job(file, mesh, OURS if ours else BUILT_IN, moved, increments=increments)


def write_job(
    file: Path, mesh: Mesh, material: str, moved: Mapping[tuple[int, int], float], *,
    increments: int = 4, nlgeom: bool = False,
) -> None:  # fmt: skip
    """A job that moves displacements in equal increments.

    moved: how far, by node and direction, which count from 0
    """
    name = material.split("NAME=")[1].split()[0]
    rows = [[n, *row] for n, row in enumerate((1 + mesh.elements).tolist(), 1)]
    wide = 10  # a line holds 16 numbers at most
    lines = [
        "*NODE, NSET=NALL",
        *(f"{n}, {x:.12g}, {y:.12g}, {z:.12g}" for n, (x, y, z) in enumerate(mesh.points, 1)),
        f"*ELEMENT, TYPE={mesh.kind}, ELSET=EALL",
        *(
            ",\n".join(", ".join(map(str, row[k : k + wide])) for k in range(0, len(row), wide))
            for row in rows
        ),
        material.rstrip(), f"*SOLID SECTION, ELSET=EALL, MATERIAL={name}",
        f"*STEP, INC={10 * increments}" + ", NLGEOM" * nlgeom,
        "*STATIC, DIRECT", f"{1 / increments:.12g}, 1.",
        # residuals to 1e-9 of the mean force, corrections to 1e-9 of the increment
        "*CONTROLS, PARAMETERS=FIELD", "1e-9, 1e-9, , , 1e-9",
        "*BOUNDARY", *(f"{n + 1}, {d + 1}, {d + 1}, {u:.14g}" for (n, d), u in moved.items()),
        f"*NODE PRINT, NSET=NALL, FREQUENCY={increments}", "U",
        f"*EL PRINT, ELSET=EALL, FREQUENCY={increments}", "S",
        "*END STEP", "",
    ]  # fmt: skip
    file.write_text("\n".join(lines))


def run(program: Path, file: Path, threads: int = 1) -> Job:
    """Run a job in its folder."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "CCX_NPROC_STIFFNESS": str(threads),
    }
    start, before = time.perf_counter(), _count_busy()
    done = subprocess.run(
        [str(program.resolve()), file.stem], cwd=file.parent, env=environment, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    seconds, busy = time.perf_counter() - start, _count_busy() - before
    if done.returncode or "*ERROR" in done.stdout:
        told = done.stdout[-3000:] + done.stderr[-1000:]
        raise RuntimeError(f"{file.name} ended with {done.returncode}\n{told}")
    tables: dict[str, list[list[float]]] = {"displacements": [], "stresses": []}
    table: list[list[float]] = []
    for line in file.with_suffix(".dat").read_text().splitlines():
        words = line.split()
        if words and words[0] in tables:
            table = tables[words[0]] = []  # the last increment stays
        elif words:
            table.append([float(w) for w in words])
    moved, stressed = (np.array(tables[name]) for name in tables)
    return Job(moved[:, 1:], stressed[:, 2:], seconds, busy, done.stdout)


def _count_busy() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
