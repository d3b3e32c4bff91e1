"""The consistent tangent beside finite differences of all step lengths. Writes `tangent.svg`."""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

import ingot

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Differentiate one step of a return map exactly and by differences, and plot the gap."""
    tight = ["Solvers/newton/abs_tol:=1e-14", "Solvers/newton/rel_tol:=0"]
    model = ingot.build(ingot.read(HERE / "viscoplastic.i", tight), "model")
    steel = ingot.compile(model, derivative=("stress:strain",))
    zero = torch.zeros((), dtype=torch.float64)
    strain = torch.tensor([0.004, -0.002, -0.002, 0, 0, 0.001], dtype=torch.float64)
    old = {"plastic_strain~1": zero.expand(6), "equivalent_plastic_strain~1": zero}
    step = {"t": zero + 1, "t~1": zero, **old}
    tangent = steel.jacobian({"strain": strain, **step})["stress"]["strain"]

    lengths = torch.logspace(-12, -3, 46, dtype=torch.float64)
    gaps = []
    for length in lengths:
        h = length * torch.eye(6, dtype=torch.float64)
        ahead, behind = (steel({"strain": strain + s * h, **step})["stress"] for s in (1, -1))
        difference = ((ahead - behind) / (2 * length)).T
        gaps.append(float((difference - tangent).norm() / tangent.norm()))

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(lengths, gaps, ".-")
    axes.set_xlabel("length of the step of central differences")
    axes.set_ylabel("relative distance from the tangent")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "tangent.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
