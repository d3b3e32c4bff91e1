"""A cyclic test of a steel by two presets, `cyclic.i`. Writes `cyclic.svg`."""

import sys
from pathlib import Path

from matplotlib.figure import Figure

from ingot import Factory, read
from ingot.drivers import transient_driver

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Run the test and plot its loops."""
    result = transient_driver(Factory(read(HERE / "cyclic.i")), "cyclic").run("kernel")
    strain, stress = result.outputs["strain"][..., 0], result.outputs["stress"][..., 0]
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(100 * strain, stress, linewidth=1)
    axes.set_xlabel("axial strain (%)")
    axes.set_ylabel("axial stress (MPa)")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "cyclic.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
