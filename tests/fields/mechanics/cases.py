"""Inputs of mechanics that tests share, and what they are compared with."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ingot.fields import Result, build, run
from ingot.hit import read

__all__ = ["DE_GEUS", "SOLVE", "dense", "derivatives", "simulated"]

SOLVE = """
[Domain]
  dim = {dim}
  {sizes}
[]
[Problem]
  marlin_compatible = false
[]
[TensorComputes]
  [Initialize]
    {start}
    [F]
      type = RankTwoIdentity
      buffer = F
      size = {side}
    []
  []
  [Solve]
    {law}
    [root]
      [load]
        type = MacroscopicDeformation
        buffer = load
        rate = '{rate}'
      []
      [mech]
        type = FFTMechanics
        buffer = Fnew
        constitutive_model = law
        applied_macroscopic_strain = load
        l_tol = 1e-13
        nl_rel_tol = 1e-12
        nl_abs_tol = 1e-12
      []
    []
  []
[]
[TensorSolver]
  type = ForwardEulerSolver
  root_compute = root
  forward_buffer = F
  forward_buffer_new = Fnew
[]
[Executioner]
  type = Transient
  num_steps = 1
  dt = 1
[]
"""
"""One step of a load that a body takes up."""

DE_GEUS = """
[Domain]
  dim = 3
  nx = 16
  ny = 16
  nz = 16
  xmax = ${fparse 2*pi}
  ymax = ${fparse 2*pi}
  zmax = ${fparse 2*pi}
[]
[TensorComputes]
  [Initialize]
    [phase]
      type = ParsedCompute
      expression = '(cos(x)/2+0.5)*(cos(y)/2+0.5)*(cos(z)/2+0.5)'
      extra_symbols = true
      buffer = phase
    []
    [K]
      type = ParsedCompute
      buffer = K
      expression = '(1-phase)*1 + phase*10'
      inputs = phase
    []
    [mu]
      type = ParsedCompute
      buffer = mu
      expression = '(1-phase)*0.5 + phase*5'
      inputs = phase
    []
    [F]
      type = RankTwoIdentity
      buffer = F
    []
  []
  [Solve]
    [law]
      type = HyperElasticIsotropic
      buffer = stress
      F = Fnew
      K = K
      mu = mu
    []
    [root]
      [load]
        type = MacroscopicShearTensor
        buffer = load
      []
      [mech]
        type = FFTMechanics
        buffer = Fnew
        K = K
        mu = mu
        l_max_its = 40
        l_tol = 1e-2
        nl_rel_tol = 2e-2
        nl_abs_tol = 2e-2
        constitutive_model = law
        applied_macroscopic_strain = load
      []
    []
  []
  [Postprocess]
    [displacements]
      type = ComputeDisplacements
      buffer = disp
      F = F
    []
    [vonmises]
      type = ComputeVonMisesStress
      buffer = sV
    []
  []
[]
[TensorSolver]
  type = ForwardEulerSolver
  root_compute = root
  forward_buffer = F
  forward_buffer_new = Fnew
  substeps = 10
[]
[Executioner]
  type = Transient
  num_steps = 3
  dt = 0.01
[]
"""
"""A hyperelastic cube with a stiff core, sheared."""


def simulated(
    text: str, folder: Path, *overrides: str, jit: bool = False, strict: bool = False
) -> Result:
    """Run a text, its files beside it."""
    file = folder / "input.i"
    file.write_text(text)
    return run(build(read(file, overrides, moose=True)), folder, jit=jit, strict=strict)


def derivatives(sizes: Sequence[int]) -> list[NDArray[np.float64]]:
    """The matrix of the slope along each axis of fields on a box of length 1, by their waves."""
    count = int(np.prod(sizes))
    found = []
    for axis, n in enumerate(sizes):
        waves = 2 * np.pi * np.fft.fftfreq(n, 1 / n)
        if n % 2 == 0:
            waves[n // 2] = 0  # the slope of cos(pi x / h) at the points
        wide = waves.reshape([-1 if a == axis else 1 for a in range(len(sizes))])
        units = np.eye(count).reshape(count, *sizes)
        slopes = np.fft.ifft(1j * wide * np.fft.fft(units, axis=axis + 1), axis=axis + 1).real
        found.append(slopes.reshape(count, count).T)
    return found


def dense(tangent: Tensor, applied: NDArray[np.float64], sizes: Sequence[int]) -> Tensor:
    """The gradient of displacements that balances a linear body, by one matrix of all points."""
    side, count = applied.shape[0], int(np.prod(sizes))
    slopes = derivatives(sizes)
    # rows: entries of the gradient at all points; columns: displacements at all points
    gradient = np.zeros((side, side, count, side, count))
    for i in range(side):
        for axis, slope in enumerate(slopes):
            gradient[i, axis, :, i, :] = slope
    flat = gradient.reshape(side * side * count, side * count)
    stiff = tangent.reshape(count, side * side, side * side).numpy()
    whole = np.zeros((side * side, count, side * side, count))
    for point in range(count):
        whole[:, point, :, point] = stiff[point]
    matrix = whole.reshape(side * side * count, -1)
    load = np.repeat(applied.reshape(-1, 1), count, 1).reshape(-1)
    moves = np.linalg.lstsq(flat.T @ matrix @ flat, -flat.T @ matrix @ load, rcond=1e-12)[0]
    found = (flat @ moves + load).reshape(side, side, *sizes)
    return torch.from_numpy(np.moveaxis(found, (0, 1), (-2, -1)).copy())
