"""Input files of lattice Boltzmann runs, put together from a few words."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ingot.errors import IngotWarning
from ingot.fields import Run, build, prepared
from ingot.hit import read

Blocks = Mapping[str, Mapping[str, Any]]


def written(blocks: Blocks) -> str:
    """Blocks of a section as text."""
    return "\n".join(
        f"[{name}]\n" + "\n".join(f"{key} = '{value}'" for key, value in options.items()) + "\n[]"
        for name, options in blocks.items()
    )


def equilibrium(buffer: str, bulk: str = "rho", velocity: str = "u") -> dict[str, str]:
    return {"type": "LBMEquilibrium", "buffer": buffer, "bulk": bulk, "velocity": velocity}


DENSITY = {"type": "LBMComputeDensity", "buffer": "rho", "f": "f"}
VELOCITY = {"type": "LBMComputeVelocity", "buffer": "u", "f": "f", "rho": "rho"}
COLLISION = {"type": "LBMBGKCollision", "buffer": "fpc", "f": "f", "feq": "feq", "tau0": 0.8}
FLOW = {"f": "df", "feq": "df", "fpc": "df", "u": "mv", "rho": "ms"}


def lattice_input(
    sizes: Sequence[int],
    stencil: str,
    *,
    initialize: Blocks | None = None,
    solve: Blocks | None = None,
    boundary: Blocks | None = None,
    buffers: Mapping[str, str] | None = None,
    problem: Mapping[str, Any] | None = None,
    streams: tuple[str, str] | None = ("f", "fpc"),
    more: str = "",
    compatible: bool = False,
) -> str:
    """The text of an input file."""
    kinds = FLOW if buffers is None else buffers
    solve = {
        "rho": DENSITY, "u": VELOCITY, "feq": equilibrium("feq"), "collide": COLLISION,
    } if solve is None else solve  # fmt: skip
    initialize = {
        "rho": {"type": "LBMConstantTensor", "buffer": "rho", "constants": 1},
        "f": equilibrium("f"), "fpc": equilibrium("fpc"), "feq": equilibrium("feq"),
    } if initialize is None else initialize  # fmt: skip
    solver = {"type": "LBMStream", "buffer": streams[0], "f_old": streams[1]} if streams else None
    counts = dict(zip(("nx", "ny", "nz"), sizes, strict=False))
    options = {
        "type": "LatticeBoltzmannProblem", "marlin_compatible": str(compatible).lower(),
        **(problem or {}),
    }  # fmt: skip
    sections = {
        "Domain": {"dim": len(sizes), **counts},
        "Problem": options,
        "Executioner": {"type": "Transient", "num_steps": 1},
        **({"TensorSolver": solver} if solver else {}),
    }
    declared = {name: {"type": "LBMTensorBuffer", "buffer_type": k} for name, k in kinds.items()}
    return f"""{written(sections)}
[Stencil]
[lattice]
type = LBM{stencil}
[]
[]
[TensorBuffers]
{written(declared)}
[]
[TensorComputes]
[Initialize]
{written(initialize)}
[]
[Solve]
{written(solve)}
[]
[Boundary]
{written(boundary or {})}
[]
[]
{more}
"""


def started(text: str, folder: Path, *, jit: bool = False, **options: Any) -> Run:
    """A run of an input, its buffers filled."""
    file = folder / "lattice.i"
    file.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IngotWarning)
        run = prepared(build(read(file, moose=True)), folder, jit=jit, **options)
        run.start()
    return run


def advance(run: Run, count: int = 1) -> None:
    """Steps of the lattice, from what the buffers hold now."""
    for _ in range(count):
        run.state.advance()
        run.executor.run(run.simulation.root.steps, run.state)
