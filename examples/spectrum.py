"""The spectrum of a spinodal decomposition at three times. Writes `spectrum.svg`."""

import sys
import tempfile
from pathlib import Path

import torch
from matplotlib.figure import Figure

from ingot.fields import build, prepared
from ingot.hit import read

HERE = Path(__file__).parent
CELLS = 64
TIMES = (2, 10, 50)


def main(folder: Path) -> None:
    """Run a small box and plot the shell averages of its spectrum at a few times."""
    overrides = [f"Domain/n{a}={CELLS}" for a in "xy"] + [f"Domain/{a}max={CELLS}" for a in "xy"]
    tree = read(HERE / "pfhub1a.i", [*overrides, f"Executioner/end_time={TIMES[-1]}"], moose=True)
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    waiting = list(TIMES)
    with tempfile.TemporaryDirectory() as scratch:
        for now in prepared(build(tree), scratch).steps():
            while waiting and now.time >= waiting[0]:
                axes.semilogy(shells(now.state.buffers["c"]), label=f"time {waiting.pop(0)}")
    axes.set_xlabel("waves across the box")
    axes.set_ylabel("mean square of the spectrum")
    axes.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "spectrum.svg")


def shells(field: torch.Tensor) -> torch.Tensor:
    """The mean of the squared spectrum over rings of equal wavenumber."""
    power = torch.fft.fft2(field - field.mean()).abs().square() / field.numel()
    waves = torch.fft.fftfreq(CELLS, 1 / CELLS)
    ring = torch.hypot(*torch.meshgrid(waves, waves, indexing="ij")).round().long().flatten()
    totals = torch.zeros(int(ring.max()) + 1, dtype=power.dtype).index_add(0, ring, power.flatten())
    return (totals / ring.bincount())[: CELLS // 2]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
