"""Two thousand steels drawn at random along one path, in one call a step. Writes `scatter.svg`."""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

import ingot

HERE = Path(__file__).parent
STEELS = 2000


def main(folder: Path) -> None:
    """Draw parameters, step through the path, and plot how stresses spread."""
    torch.manual_seed(0)
    model = ingot.build(ingot.read(HERE / "viscoplastic.i"), "model")
    steels = ingot.compile(model, parameter=("yield_stress", "saturated_hardening"))
    draws = torch.randn(2, STEELS, dtype=torch.float64)
    steels.set_parameter("yield_stress", 200 + 15 * draws[0])
    steels.set_parameter("saturated_hardening", 100 + 20 * draws[1])

    zero = torch.zeros((), dtype=torch.float64)
    direction = torch.tensor([1, -0.5, -0.5, 0, 0, 0], dtype=torch.float64)
    old = {"plastic_strain~1": zero.expand(6), "equivalent_plastic_strain~1": zero}
    curves = []
    for step in range(1, 41):
        outputs = steels(
            {"strain": 5e-4 * step * direction, "t": zero + step, "t~1": zero + step - 1, **old}
        )
        old = {
            f"{name}~1": outputs[name] for name in ("plastic_strain", "equivalent_plastic_strain")
        }
        curves.append(1.5 * outputs["stress"][:, 0])
    stress = torch.stack(curves)

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    strain = [0.05 * step for step in range(1, 41)]
    for low, shade in ((0.01, "0.9"), (0.1, "0.78"), (0.25, "0.65")):
        edges = torch.tensor([low, 1 - low], dtype=torch.float64)
        bottom, top = stress.quantile(edges, dim=1)
        axes.fill_between(
            strain, bottom, top, color=shade, label=f"{1 - 2 * low:.0%} of the steels"
        )
    axes.plot(strain, stress.median(dim=1).values, color="#1f5f99", label="median")
    axes.set_xlabel("axial strain (%)")
    axes.set_ylabel("von Mises stress (MPa)")
    axes.legend(frameon=False, loc="lower right")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "scatter.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
