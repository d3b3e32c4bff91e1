"""A porous steel under tension in all directions: its voids grow. Writes `voids.svg`."""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

import ingot

HERE = Path(__file__).parent
MODEL = """
[Models]
  [steel]
    type = GTNDamage
    E = 200e3
    nu = 0.3
    yield_stress = 250
  []
[]
"""


def main(folder: Path) -> None:
    """Step through the strain and plot the stress and the voids, for three porosities."""
    steel = ingot.compile(ingot.build(ingot.read_text(MODEL), "steel"))
    zero = torch.zeros((), dtype=torch.float64)
    voids = torch.tensor([0.002, 0.01, 0.03], dtype=torch.float64)
    state = {"plastic_strain": zero.expand(6), "equivalent_plastic_strain": zero, "flow_rate": zero}
    state |= {"void_fraction": voids}
    direction = torch.tensor([1, 1, 1, 0, 0, 0], dtype=torch.float64)
    strain, mean, fraction = [], [], []
    for step in range(1, 201):
        old = {f"{n}~1": x for n, x in state.items() if f"{n}~1" in steel.input_spec}
        now = {"strain": 2e-4 * step * direction, "t": zero + step, "t~1": zero + step - 1}
        outputs = steel({**now, **old})
        state = {name: outputs.get(name, value) for name, value in state.items()}
        strain.append(100 * 6e-4 * step)
        mean.append(outputs["stress"][:, :3].mean(dim=1))
        fraction.append(100 * outputs["void_fraction"])

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    left, right = figure.subplots(ncols=2)
    for at, first in enumerate(voids.tolist()):
        left.plot(strain, torch.stack(mean)[:, at], label=f"{first:.1%} of voids at first")
        right.plot(strain, torch.stack(fraction)[:, at])
    left.set_ylabel("mean stress (MPa)")
    right.set_ylabel("voids (%)")
    for axes in (left, right):
        axes.set_xlabel("growth of the volume (%)")
    left.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "voids.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
