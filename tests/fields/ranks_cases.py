"""Lattices and bodies whose boxes ranks share: texts, overrides, and the fields to compare."""

from collections.abc import Mapping
from typing import Any

from tests.fields.lbm.cases import COLLISION, DENSITY, FLOW, VELOCITY, equilibrium, lattice_input
from tests.fields.mechanics.cases import DE_GEUS, SOLVE

__all__ = ["BODIES", "DISPLACED", "LATTICES", "TRANSFORMED"]

Scenario = tuple[str, tuple[str, ...], tuple[str, ...]]
"""A text, what is changed in it, and the fields to compare."""


def noise(name: str, low: float, high: float, seed: int) -> dict[str, Any]:
    return {"type": "RandomTensor", "buffer": name, "min": low, "max": high, "seed": seed}


def parsed(name: str, expression: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "ParsedCompute", "buffer": name, "expression": expression,
        "extra_symbols": "true", **more,
    }  # fmt: skip


def flow(
    sizes: tuple[int, ...], stencil: str, *, medium: str, collision: Mapping[str, Any],
    boundary: Mapping[str, Mapping[str, Any]], solve: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:  # fmt: skip
    """A flow that starts at random around what a medium keeps closed."""
    parts = ["ux", "uy", "uz"][: len(sizes)]
    initialize = {
        "media": parsed("media", medium, is_integer="true", expand="REAL"),
        "rho": noise("rho", 0.95, 1.05, 1),
        **{name: noise(name, -0.03, 0.03, 2 + at) for at, name in enumerate(parts)},
        "u": {"type": "LBMStackTensors", "buffer": "u", "inputs": " ".join(parts)},
        **{name: equilibrium(name) for name in ("f", "fpc", "feq")},
    }
    computes = {
        "rho": DENSITY, "u": VELOCITY, "feq": equilibrium("feq"),
        "collide": {**COLLISION, **collision},
        "speed": {"type": "LBMComputeVelocityMagnitude", "buffer": "speed", "velocity": "u"},
        "residual": {"type": "LBMComputeResidual", "buffer": "none", "speed": "speed"},
        **(solve or {}),
    }  # fmt: skip
    return lattice_input(
        sizes, stencil, initialize=initialize, solve=computes, boundary=boundary,
        buffers={**FLOW, "media": "ms", "speed": "ms"}, problem={"binary_media": "media"},
    )  # fmt: skip


def face(kind: str, where: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "buffer": "f", "boundary": where, **more}


def departing(where: str, **more: Any) -> dict[str, Any]:
    return {"boundary": where, "buffer": "f", "f_old": "fpc", "feq": "feq", "velocity": "u", **more}


CHANNEL = flow(
    (13, 10), "D2Q9",
    medium="if((x-0.4)^2 + (y-0.5)^2 < 0.03, 0, 1)", collision={},
    boundary={
        "in": face("LBMFixedFirstOrderBC", "left", f="f", value=0.04, perturb="true"),
        "out": face("LBMFixedZerothOrderBC", "right", f="f", value=1.0),
        "low": face("LBMBounceBack", "bottom", f_old="fpc", exclude_corners_x="true"),
        "high": face("LBMBounceBack", "top", f_old="fpc"),
        "wall": face("LBMBounceBack", "wall", f_old="fpc"),
    },
)  # fmt: skip

OPEN = flow(
    (9, 12), "D2Q9",
    medium="if(x < 0.2, 2, if((x-0.6)^2 + (y-0.5)^2 < 0.03, 0, 1))",
    collision={"type": "LBMSmagorinskyCollision", "marlin_compatible": "true"},
    boundary={
        "left": face("LBMMicroscopicZeroGradientBC", "left"),
        "right": {"type": "LBMDirichletBC", **departing("right", value=1.01)},
        "low": {"type": "LBMNeumannBC", **departing("bottom", gradient=0.001, rho="rho")},
        "high": face("LBMMicroscopicZeroGradientBC", "top"),
        "some": {"type": "LBMDirichletBC", **departing("regional", region_id=2, value=0.99)},
    },
    solve={
        "lap": {"type": "LBMIsotropicLaplacian", "buffer": "lap", "scalar_field": "rho",
                "marlin_compatible": "true"},
        "slope": {"type": "LBMIsotropicGradient", "buffer": "slope", "scalar_field": "rho"},
        "edge": {"type": "LBMIsotropicGradient", "buffer": "edge", "scalar_field": "speed",
                 "marlin_compatible": "true"},
    },
)  # fmt: skip

BLOCK = flow(
    (6, 7, 5), "D3Q19",
    medium="if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.06, 0, 1)",
    collision={"type": "LBMMRTCollision"},
    boundary={
        "in": face("LBMFixedFirstOrderBC", "left", f="f", value=0.03),
        "out": face("LBMFixedZerothOrderBC", "right", f="f", value=1.0),
        "low": face("LBMBounceBack", "bottom", f_old="fpc", exclude_corners_z="true"),
        "back": face("LBMBounceBack", "back", f_old="fpc"),
        "wall": face("LBMBounceBack", "wall", f_old="fpc"),
    },
)  # fmt: skip


def shared(axes: str, steps: int) -> tuple[str, ...]:
    return (
        "Domain/parallel_mode=REAL_SPACE", f"Domain/periodic_directions='{axes}'",
        f"Executioner/num_steps={steps}",
    )  # fmt: skip


FOUND = ("f", "rho", "u", "speed", "#residual", "media")
LATTICES: dict[str, Scenario] = {
    "channel": (CHANNEL, shared("X Y", 12), FOUND),
    "channel-slab": (
        CHANNEL, ("Domain/parallel_mode=FFT_SLAB", "Executioner/num_steps=5"), FOUND,
    ),
    "open": (OPEN, shared("X Y", 12), (*FOUND, "lap", "slope", "edge")),
    "block": (BLOCK, shared("X Y Z", 6), FOUND),
}  # fmt: skip


def body(sizes: tuple[int, ...], inclusion: str, rate: str, **solve: str) -> str:
    """A stiff inclusion in a body that a load deforms."""
    counts = "\n".join(f"n{axis} = {n}" for axis, n in zip("xyz", sizes, strict=False))
    start = f"""
    [phase]
      type = ParsedCompute
      buffer = phase
      expression = '{inclusion}'
      extra_symbols = true
    []
    [K]
      type = ParsedCompute
      buffer = K
      expression = '1 + 9*phase'
      inputs = phase
    []
    [mu]
      type = ParsedCompute
      buffer = mu
      expression = '0.5 + 4*phase'
      inputs = phase
    []
    """
    law = """
    [law]
      type = HyperElasticIsotropic
      buffer = stress
      F = Fnew
      K = K
      mu = mu
    []
    """
    text = SOLVE.format(
        dim=len(sizes), sizes=counts, start=start, side=len(sizes), law=law, rate=rate
    )
    more = "\n".join(f"{name} = {value}" for name, value in solve.items())
    return text.replace("buffer = Fnew\n", f"buffer = Fnew\n{more}\n", 1)


PLATE = body((9, 8), "if((x-0.5)^2 + (y-0.4)^2 < 0.06, 1, 0)", "0.02 0.05 0 -0.01")
CUBE = body(
    (6, 5, 7), "if((x-0.5)^2 + (y-0.5)^2 + (z-0.4)^2 < 0.1, 1, 0)", "0.01 0.04 0 0 0 0 0 0 -0.01",
    preconditioner="GREEN",
)  # fmt: skip
# Loose conjugate gradients multiply rounding: without ranks too, the layouts of spectra differ by
# 1e-13 after one step and by 3e-10 after two, and more with the Nyquist waves of even axes; the
# stress of so small a strain loses two more digits. So F is compared, after one step.
SHEARED = (
    "Domain/nx=7", "Domain/ny=5", "Domain/nz=11", "Executioner/num_steps=1",
    "TensorSolver/substeps=2", "TensorComputes/Initialize/corner/type=PhaseMechanicsTest",
    "TensorComputes/Initialize/corner/buffer=corner",
)  # fmt: skip
NO_NODES = "TensorComputes/Postprocess/active=vonmises"
MOVED = ("F", "stress")
BODIES: dict[str, Scenario] = {
    "plate": (PLATE, ("Domain/parallel_mode=FFT_SLAB",), MOVED),
    "cube": (CUBE, ("Domain/parallel_mode=FFT_SLAB",), MOVED),
    "cube-pencil": (CUBE, ("Domain/parallel_mode=FFT_PENCIL",), MOVED),
    "sheared-pencil": (
        DE_GEUS, ("Domain/parallel_mode=FFT_PENCIL", *SHEARED, NO_NODES),
        ("F", "corner"),
    ),
    "sheared-slab": (
        DE_GEUS, ("Domain/parallel_mode=FFT_SLAB", *SHEARED, NO_NODES), ("F", "corner"),
    ),
}  # fmt: skip

DISPLACED: Scenario = (DE_GEUS, ("Domain/parallel_mode=FFT_SLAB", *SHEARED), ())
"""What has a node more than cells along each axis, which no part of a box has."""

TRANSFORMED: Scenario = (
    DE_GEUS,
    (
        "Domain/parallel_mode=FFT_SLAB", *SHEARED, NO_NODES,
        "TensorComputes/Initialize/phase/expression='0.01*abs(FFT(x+y))'",
    ),
    (),
)  # fmt: skip
"""A transform along the last axis in an expression."""
