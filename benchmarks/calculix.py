"""J2 plasticity in CalculiX, ours and its own: `python -m benchmarks.calculix [ELEMENTS]`.

In: CalculiX as `make hosts` builds it. Out: seconds of both jobs and their ratio, the share of the
material, and how far results are apart. Residuals are tightened to 1e-9.
"""

import re
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.hosts import calculix


def main(elements: int) -> None:
    """Run a bent bar with our material, timed and not, and with the built-in one."""
    if not calculix.is_there():
        sys.exit("CalculiX is not built: run `make hosts`")
    side = max(round((elements / 10) ** (1 / 3)), 1)
    cells = (max(round(elements / side**2), 1), side, side)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = calculix.compile_j2(folder)
        programs = {
            "ours, timed": calculix.link(package, folder / "timed", timed=True),
            "ours": calculix.link(package, folder / "ours"),
            "built in": calculix.FOLDER / f"ccx_{calculix.VERSION}",
        }
        jobs: dict[str, calculix.Job] = {}
        print(f"{cells[0] * side * side} C3D8 elements, {cells} cells")
        for title, program in programs.items():
            file = folder / "bar.inp"
            pull = (0.005 * cells[0], 0.015 * cells[0], 0.003 * cells[0])
            calculix.write_bar(file, cells, cells, pull, ours=title != "built in")
            job = jobs[title] = calculix.run(program, file)
            print(f"{title:12}  {job.seconds:8.1f} s, busy {job.busy:8.1f} s", flush=True)
    told = re.search(r"umat (\d+) calls ([\d.]+) s", jobs["ours, timed"].text)
    assert told is not None
    calls, spent = int(told[1]), float(told[2])
    print(f"material  {calls} calls, {spent / calls * 1e6:.2f} us each,"
          f" {spent / jobs['ours, timed'].seconds:.1%} of the job")  # fmt: skip
    ours, own = jobs["ours"], jobs["built in"]
    print(
        f"ratio     {ours.busy / own.busy:.3f} busy, {ours.seconds / own.seconds:.3f} by the clock"
    )
    for what in ("stresses", "displacements"):
        a, b = getattr(ours, what), getattr(own, what)
        print(f"{what}  apart by {np.abs(a - b).max() / np.abs(b).max():.1e} of the largest")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
