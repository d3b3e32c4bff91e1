"""A thousand copper crystals stretched by 5 %: compile, run, print the speed, plot the stress.

Writes `out/crystal.png` and `out/crystal.txt` beside this file, or under the folder that is named.
"""

import shutil
import sys
from pathlib import Path

from matplotlib.figure import Figure
from torch import Tensor

from ingot import Factory, read
from ingot.drivers import Result, require_converged, transient_driver

HERE = Path(__file__).parent
GREY, BLUE = "0.85", "#1f5f99"


def main(folder: Path) -> None:
    """Run the crystals and write what came out."""
    backend = "kernel" if shutil.which("g++") or shutil.which("clang++") else "interpret"
    driver = transient_driver(Factory(read(HERE / "crystal.i")), "stretch")
    driver.run(backend)
    result = driver.run(backend)
    require_converged(driver, result)

    strain, stress = curves(result)
    folder.mkdir(parents=True, exist_ok=True)
    text = told(result, driver.prepare_seconds[backend], backend, stress)
    (folder / "crystal.txt").write_text(text)
    plot(strain, stress, folder / "crystal.png")
    print(text, end="")


def curves(result: Result) -> tuple[Tensor, Tensor]:
    """Strain (steps,) in per cent, and each crystal's axial stress difference (steps, crystals)."""
    strain = 100 * result.inputs["t"] * result.inputs["deformation_rate"][:, 0]
    stress = result.outputs["cauchy_stress"]
    return strain, stress[..., 0] - (stress[..., 1] + stress[..., 2]) / 2


def told(result: Result, prepared: float, backend: str, stress: Tensor) -> str:
    """What there is to say about the run."""
    (status,) = result.statuses
    last = stress[-1]
    return (
        f"{result.points} crystals, {result.steps - 1} steps, backend {backend}\n"
        f"prepared in {prepared:.2f} s, run in {1e3 * result.seconds:.0f} ms:"
        f" {result.microseconds:.2f} µs per crystal and step\n"
        f"{result.points - result.failed} converged, {result.failed} failed,"
        f" {status.iterations.double().mean():.1f} iterations a step\n"
        f"stress at the end: {last.mean():.0f} MPa, between {last.min():.0f} and {last.max():.0f}\n"
    )


def plot(strain: Tensor, stress: Tensor, file: Path) -> None:
    """The mean over all crystals, the middle four fifths of them, and a few single ones."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    low, high = stress.quantile(0.1, dim=1), stress.quantile(0.9, dim=1)
    axes.fill_between(strain, low, high, color=GREY, label="middle 80 % of the crystals")
    axes.plot(strain, stress[:, :6], color="0.6", linewidth=0.7)
    axes.plot(strain, stress.mean(dim=1), color=BLUE, linewidth=2, label="mean")
    axes.set_xlabel("axial strain (%)")
    axes.set_ylabel("axial stress difference (MPa)")
    axes.set_xlim(0, float(strain[-1]))
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
