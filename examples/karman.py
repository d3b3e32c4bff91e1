"""A von Karman street behind a cylinder: run `karman.i`, draw the vorticity of its last step.

Writes `out/karman.png` beside this file, or under the folder that is named. The number of steps may
follow: `python examples/karman.py docs/pictures 30` draws the picture of the docs.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from matplotlib.figure import Figure

from ingot.fields import run_file

HERE = Path(__file__).parent


def main(folder: Path, steps: int) -> None:
    """Run the flow and draw it."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as files:
        result = run_file(HERE / "karman.i", [f"Executioner/num_steps={steps}"], files)
    velocity = result.state.buffers["velocity"].cpu()
    across, along = (
        torch.gradient(velocity[..., part], dim=axis)[0] for part, axis in ((1, 0), (0, 1))
    )
    vorticity = across - along
    vorticity[result.state.buffers["#solid"].cpu()] = torch.nan
    figure = Figure(figsize=(8, 2.9), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(vorticity.T, origin="lower", cmap="RdBu", vmin=-0.02, vmax=0.02)
    figure.colorbar(image, label="vorticity, per step")
    axes.set(xlabel="x, cells", ylabel="y, cells", title=f"after {500 * steps} steps, Re = 100")
    axes.set_facecolor("0.3")
    figure.savefig(folder / "karman.png", dpi=110)
    print(f"largest speed {result.values[-1]['fastest']:.4f} after {result.steps} steps")


if __name__ == "__main__":
    main(
        Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out",
        int(sys.argv[2]) if len(sys.argv) > 2 else 2,
    )
