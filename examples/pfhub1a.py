"""PFHub benchmark 1a: run `pfhub1a.i`, check its free energy and its mean, draw the curve.

Writes `out/pfhub1a.svg` and `out/pfhub1a.txt` beside this file, or under the folder that is named.
The time to go to may follow: `python examples/pfhub1a.py docs 2e4` draws the picture of the docs.
"""

import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import torch
from matplotlib.figure import Figure

from ingot.fields import Result, run_file

HERE = Path(__file__).parent
BLUE = "#1f5f99"
FLAT = 2 * 200 * (20**0.5 * 0.4**3 / 6)
r"""The energy of two flat interfaces across the box, $\int \sqrt{2 \kappa f} dc$ a length."""


def main(folder: Path, end: float) -> None:
    """Run the benchmark and write what came out."""
    folder.mkdir(parents=True, exist_ok=True)
    values = [f"Executioner/end_time={end:g}", "TensorOutputs/fields/execute_on=FINAL"]
    start, worked = perf_counter(), process_time()
    with TemporaryDirectory() as files:
        result = run_file(HERE / "pfhub1a.i", values, files)
    worked = process_time() - worked
    text = told(result, perf_counter() - start, worked)
    (folder / "pfhub1a.txt").write_text(text)
    plot(result, f"{result.steps} steps, {worked:.0f} s of processor time", folder)
    print(text, end="")


def told(result: Result, seconds: float, worked: float) -> str:
    """What there is to say about the run; the energy falls, and the mean stays."""
    energies = [row["F"] for row in result.values]
    means = [row["mean"] for row in result.values]
    assert all(after < before for before, after in pairwise(energies)), "the energy rises"
    drift = max(abs(mean - means[0]) for mean in means)
    return (
        f"{result.steps} steps of 5 substeps to time {result.times[-1]:g} in {seconds:.0f} s\n"
        f"({worked:.0f} s of processor time on {torch.get_num_threads()} threads)\n"
        f"free energy {energies[0]:.2f} at the start, {energies[-1]:.2f} at the end,"
        f" {FLAT:.2f} for two flat interfaces\n"
        f"mean {means[0]:.6f}, changed by {drift:.1e} at most\n"
    )


def plot(result: Result, title: str, folder: Path) -> None:
    """The energy over the logarithm of time, and the composition at the end."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    curve, field = figure.subplots(1, 2, width_ratios=(3, 2))
    curve.semilogx(result.times[1:], [row["F"] for row in result.values[1:]], color=BLUE)
    curve.axhline(FLAT, color="0.6", linewidth=0.8, linestyle="--")
    curve.set(xlabel="time", ylabel="total free energy", ylim=(0, None), title=title)
    image = field.imshow(result.state.buffers["c"].T, origin="lower", extent=(0, 200, 0, 200))
    figure.colorbar(image, label="composition", shrink=0.8)
    field.set(xlabel="x", ylabel="y", title=f"time {result.times[-1]:g}")
    figure.savefig(folder / "pfhub1a.svg")


if __name__ == "__main__":
    named = sys.argv[1:]
    main(Path(named[0]) if named else HERE / "out", float(named[1]) if len(named) > 1 else 20.0)
