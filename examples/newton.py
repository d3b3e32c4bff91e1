"""How many updates Newton's method takes, over rates and lengths of a step. Writes `newton.svg`."""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

import ingot

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Take one step at every point of a grid and plot the updates."""
    more = ["Solvers/newton/max_its:=40"]
    steel = ingot.compile(ingot.build(ingot.read(HERE / "viscoplastic.i", more), "model"))
    strain = torch.linspace(0.0005, 0.02, 120, dtype=torch.float64)
    seconds = torch.logspace(-3, 5, 100, dtype=torch.float64)[:, None]
    direction = torch.tensor([1, -0.5, -0.5, 0, 0, 0], dtype=torch.float64)
    zero = torch.zeros((), dtype=torch.float64)
    old = {"plastic_strain~1": zero.expand(6), "equivalent_plastic_strain~1": zero}
    steel({"strain": strain[:, None] * direction, "t": seconds, "t~1": zero, **old})
    (status,) = steel.status
    updates = status.iterations.reshape(100, 120)

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    drawn = axes.pcolormesh(100 * strain, seconds[:, 0], updates, rasterized=True)
    figure.colorbar(drawn, label="updates")
    axes.set_yscale("log")
    axes.set_xlabel("strain of the step (%)")
    axes.set_ylabel("seconds of the step")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "newton.svg", dpi=120)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
