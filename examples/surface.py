"""A yield surface that depends on pressure, and its normals by exact derivatives.

Writes `surface.svg`.
"""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

import ingot
from ingot.catalog import Parameter, model
from ingot.types import SR2, Scalar, dev, norm, tr

HERE = Path(__file__).parent


@model(gives="yield_function")
def DruckerPrager(
    stress: SR2, *, friction: Parameter[Scalar], strength: Parameter[Scalar]
) -> Scalar:
    r"""A cone around the axis of pressure, $f = \sqrt{3/2} \|s\| + a \, \mathrm{tr} \sigma - k$.

    friction: the slope of the cone, $a$
    strength: the stress without pressure, $k$
    """
    return norm(dev(stress)) * 1.5**0.5 + friction * tr(stress) - strength


def main(folder: Path) -> None:
    """Evaluate the law and its gradient on a grid of plane stresses and plot both."""
    law = ingot.compile(DruckerPrager, {"friction": 0.15, "strength": 200}, derivative=(":",))
    side = torch.linspace(-420, 320, 149, dtype=torch.float64)
    x, y = torch.meshgrid(side, side, indexing="xy")
    value = law({"stress": plane(x, y)})["yield_function"]

    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    curve = axes.contour(x, y, value, levels=[0.0], colors="#1f5f99")
    points = torch.as_tensor(curve.allsegs[0][0][::12])
    normal = law.jacobian({"stress": plane(*points.T)})["yield_function"]["stress"]
    axes.quiver(*points.T, normal[:, 0], normal[:, 1], width=0.004, scale=25)
    axes.set_xlabel("stress along x (MPa)")
    axes.set_ylabel("stress along y (MPa)")
    axes.set_aspect("equal")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "surface.svg")


def plane(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Stresses of a thin sheet, as symmetric tensors."""
    return torch.stack([x, y, *[torch.zeros_like(x)] * 4], dim=-1)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
