"""A steel with hard inclusions on a grid: run `inclusions.i`, draw plastic strains and the curve.

Writes `out/inclusions.svg` beside this file, or under the folder that is named.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from matplotlib.figure import Figure

from ingot.fields import run_file

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Run the body and draw it."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # a grid this small is not worth a second
    with TemporaryDirectory() as files:
        result = run_file(HERE / "inclusions.i", (), files)
    strains = [1e-2 * time for time in result.times]
    stresses = [row["stress"] for row in result.values]
    plastic = result.state.buffers["plastic_strain"]
    print(f"mean stress {stresses[-1]:.1f} at a strain of {strains[-1]:.4f};")
    print(f"plastic strain {plastic.mean():.5f} on average, {plastic.max():.5f} at the most")
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([100 * each for each in strains], stresses, color="#1f5f99", marker=".")
    left.set(xlabel="strain / %", ylabel="mean axial stress / MPa")
    image = right.imshow(100 * plastic.T.numpy(), origin="lower", extent=(0, 1, 0, 1), cmap="magma")
    right.set(xticks=[], yticks=[], title="plastic strain / %")
    figure.colorbar(image, ax=right)
    figure.savefig(folder / "inclusions.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
