"""PFHub benchmark 1a, cut short: its published start, and what must hold on the way."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ingot.fields import run_file

FILE = Path(__file__).parents[2] / "examples" / "pfhub1a.i"


def test_the_energy_falls_and_the_mean_stays(tmp_path: Path) -> None:
    result = run_file(FILE, ["Executioner/end_time=20"], tmp_path)
    energies = [row["F"] for row in result.values]
    assert energies[0] == pytest.approx(energy_of(published_start()), rel=1e-5)
    assert all(after < before for before, after in pairwise(energies))
    # Semi-implicit Euler written in numpy, dt = 0.02 and 0.01 (212.8576, 212.9073) extrapolated.
    assert energies[-1] == pytest.approx(212.957, rel=1e-3)
    assert all(abs(row["mean"] - result.values[0]["mean"]) < 1e-12 for row in result.values)
    sizes = [after - before for before, after in pairwise(result.times)]
    assert min(sizes) < 0.15 and max(sizes) > 0.5


def published_start() -> np.ndarray:
    x, y = (np.arange(200) + 0.5)[:, None], (np.arange(200) + 0.5)[None, :]
    waves = np.cos(0.105 * x) * np.cos(0.11 * y) + (np.cos(0.13 * x) * np.cos(0.087 * y)) ** 2
    waves += np.cos(0.025 * x - 0.15 * y) * np.cos(0.07 * x - 0.02 * y)
    return 0.5 + 0.01 * waves


def energy_of(c: np.ndarray) -> float:
    r"""$\int \rho (c - c_\alpha)^2 (c_\beta - c)^2 + \frac\kappa2 |\nabla c|^2$ over cells."""
    k = 2 * np.pi * np.fft.fftfreq(200)
    spectrum = np.fft.fft2(c)
    slopes = (np.fft.ifft2(1j * wave * spectrum).real for wave in (k[:, None], k[None, :]))
    return float((5 * (c - 0.3) ** 2 * (0.7 - c) ** 2).sum() + sum((s**2).sum() for s in slopes))
