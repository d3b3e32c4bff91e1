"""A steel stretched at four rates: the faster, the higher the stress. Writes `rates.svg`."""

import sys
from pathlib import Path

from matplotlib.figure import Figure

from ingot import Factory, read
from ingot.drivers import transient_driver

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Run all rates as one batch and plot them."""
    times = "Scalar(torch.linspace(0, 1, 101)[:, None] * torch.logspace(0, 3, 4))"
    strains = "SR2(torch.linspace(0, 0.02, 101).reshape(-1, 1, 1) * SR2.fill(1, -0.5, -0.5).data)"
    overrides = [f"Tensors/times/expr:='{times}'", f"Tensors/strains/expr:='{strains}'"]
    result = transient_driver(Factory(read(HERE / "viscoplastic.i", overrides)), "stretch").run(
        "kernel"
    )
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    strain = 100 * result.inputs["strain"][:, 0, 0]
    stress = 1.5 * result.outputs["stress"][:, :, 0]  # von Mises, of a deviator along one axis
    for rate, curve in zip((2e-2, 2e-3, 2e-4, 2e-5), stress.T, strict=True):
        axes.plot(strain[1:], curve[1:], label=f"{rate:g} / s")
    axes.set_xlabel("axial strain (%)")
    axes.set_ylabel("von Mises stress (MPa)")
    axes.legend(frameon=False, loc="lower right")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "rates.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
