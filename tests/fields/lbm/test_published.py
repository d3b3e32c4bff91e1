"""Lattices of Marlin's tests whose references are not at hand, against what is published of them.

The inputs are written from the description of each: the least, largest and mean entry of the last
frame of a field, and one more of its entries, in the order in which the file has its axes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ingot.fields import run_file
from tests.fields.lbm.cases import COLLISION, DENSITY, FLOW, VELOCITY, Blocks, lattice_input
from tests.fields.lbm.cases import equilibrium as equilibrium_block

Digest = tuple[float, float, float, tuple[int, ...], float]

PUSHED = {**VELOCITY, "add_body_force": "true", "body_force_x": 1e-4}
WALLS = {
    face: {"type": "LBMBounceBack", "buffer": "f", "f_old": "fpc", "boundary": face}
    for face in ("top", "bottom")
}


def constant(buffer: str, *numbers: float) -> dict[str, Any]:
    return {"type": "LBMConstantTensor", "buffer": buffer, "constants": " ".join(map(str, numbers))}


def at_rest(*speed: float) -> Blocks:
    """Density one, a velocity, and all distributions in equilibrium with both."""
    started = {name: equilibrium_block(name) for name in ("f", "fpc", "feq")}
    return {"rho": constant("rho", 1.0), "u": constant("u", *speed), **started}


def text(
    sizes: Sequence[int], stencil: str, *, steps: int = 2, out: str = "u", more: str = "",
    **parts: Any,
) -> str:  # fmt: skip
    """An input that writes fields as Marlin does."""
    written = f"""[TensorOutputs]
[fields]
type = XDMFTensorOutput
buffer = '{out}'
enable_hdf5 = true
[]
[]
{more}"""
    made = lattice_input(sizes, stencil, compatible=True, more=written, **parts)
    return made.replace("num_steps = '1'", f"num_steps = {steps}")


def channel(stencil: str, collision: str, dim: int) -> str:
    """A fluid at rest between two walls, which half of a force moves."""
    solve = {
        "rho": DENSITY, "u": PUSHED, "feq": equilibrium_block("feq"),
        "collide": {**COLLISION, "type": collision, "tau0": 1.0},
    }  # fmt: skip
    return text((10,) * dim, stencil, initialize=at_rest(*[0.0] * dim), solve=solve,
                boundary=WALLS, problem={"substeps": 100})  # fmt: skip


ORDER = ("left", "right", "top", "bottom", "front", "back")


def still(kind: str, faces: Mapping[str, Mapping[str, Any]], sizes: Sequence[int], stencil: str,
          **more: Any) -> str:  # fmt: skip
    """Boundaries alone: nothing is streamed, and the density is summed up anew."""
    boundary = {
        face: {"type": kind, "buffer": "f", "f_old": "fpc", "feq": "feq", "velocity": "u",
               "rho": "rho", "boundary": face, **options}
        for face, options in faces.items()
    }  # fmt: skip
    start = {name: block for name, block in at_rest(0.0).items() if name != "u"}
    return text(sizes, stencil, initialize=start, solve={"rho": DENSITY}, boundary=boundary,
                streams=None, out="rho", **more)  # fmt: skip


def medium(folder: Path, *, regions: bool) -> None:
    """A cross of five solid cells, and the ring of sixteen around it as a region of its own."""
    cells = np.ones((11, 11), dtype=np.int64)
    if regions:
        for row, columns in {3: (4, 5, 6), 4: (3, 4, 6, 7), 5: (3, 7), 6: (3, 4, 6, 7),
                             7: (4, 5, 6)}.items():  # fmt: skip
            cells[row, list(columns)] = 2
    cells[4:7, 5] = cells[5, 4:7] = 0
    with h5py.File(folder / "medium.h5", "w") as file:
        file["medium"] = cells


MEDIUM = {**FLOW, "medium": "ms"}


def with_medium(made: str) -> str:
    """A buffer that starts from the file of a medium."""
    declared = "[medium]\ntype = 'LBMTensorBuffer'\nbuffer_type = 'ms'\n"
    assert declared in made
    return made.replace(declared, declared + "file = medium.h5\nis_integer = true\n")


def walled(kind: str, boundary: str, **options: Any) -> str:
    region = {"region_id": 2} if boundary == "regional" else {}
    return with_medium(
        still(kind, {boundary: {**options, **region}}, (11, 11), "D2Q9", buffers=MEDIUM,
              problem={"binary_media": "medium"})
    )  # fmt: skip


def obstacle() -> str:
    solve = {
        "rho": DENSITY, "u": VELOCITY,
        "speed": {"type": "LBMComputeVelocityMagnitude", "buffer": "speed", "velocity": "u"},
        "feq": equilibrium_block("feq"),
        "collide": {**COLLISION, "type": "LBMSmagorinskyCollision", "tau0": "tau",
                    "projection": "true"},
    }  # fmt: skip
    boundary = {
        "wall": {"type": "LBMBounceBack", "buffer": "f", "f_old": "fpc", "boundary": "wall"},
        "left": {"type": "LBMFixedFirstOrderBC", "buffer": "f", "f": "f", "value": "u0",
                 "perturb": "true", "boundary": "left"},
        "right": {"type": "LBMMicroscopicZeroGradientBC", "buffer": "f", "boundary": "right"},
    }  # fmt: skip
    constants = {"scalar_constant_names": "tau u0", "scalar_constant_values": "0.501 0.01"}
    return with_medium(
        text((11, 11), "D2Q9", steps=3, out="rho u speed medium", initialize=at_rest(0.01, 0.0),
             solve=solve, boundary=boundary, buffers={**MEDIUM, "speed": "ms"},
             problem={"binary_media": "medium", "substeps": 5, **constants})
    )  # fmt: skip


def streamed(sizes: Sequence[int], stencil: str, boundary: Blocks) -> str:
    """A distribution that is streamed without collisions."""
    start = at_rest(1e-4, 5e-4, *[0.0] * (len(sizes) - 2))
    start = {name: start[name] for name in ("rho", "u", "f")}
    return text(sizes, stencil, initialize=start, solve={"rho": DENSITY, "u": PUSHED},
                boundary=boundary, streams=("f", "f"), out="rho u",
                buffers={"f": "df", "fpc": "df", "u": "mv", "rho": "ms"},
                problem={"substeps": 2})  # fmt: skip


def face(kind: str, boundary: str, value: float) -> dict[str, Any]:
    return {"type": kind, "buffer": "f", "f": "f", "value": value, "boundary": boundary}


VERTICAL = {
    **{at: {**WALLS["top"], "boundary": at} for at in ("left", "right")},
    "top": face("LBMFixedFirstOrderBC", "top", 1e-4),
    "bottom": face("LBMFixedFirstOrderBC", "bottom", 1.1e-4),
}
MIXED = {
    "left": face("LBMFixedZerothOrderBC", "left", 1.1),
    "right": face("LBMFixedFirstOrderBC", "right", 1e-4),
}
NONE = (0.0, 0.0, 0.0)

PUBLISHED: dict[str, tuple[str, bool, dict[str, Digest]]] = {
    "channel2D": (channel("D2Q9", "LBMBGKCollision", 2), False, {
        "u_x.2": (0.000631681217962, 0.00300296484006, 0.00206650863952, (3, 3), 0.0027760898069),
        "u_y.2": (*NONE, (3, 3), 0.0),
    }),
    "channel3D": (channel("D3Q19", "LBMBGKCollision", 3), False, {
        "u_x.2": (0.000631681217962, 0.00300296484006, 0.00206650863952, (3, 3, 3),
                  0.0027760898069),
        "u_y.2": (*NONE, (3, 3, 3), 0.0),
        "u_z.2": (*NONE, (3, 3, 3), 0.0),
    }),
    "isotropic_mrt": (channel("D3Q27", "LBMMRTCollision", 3), False, {
        "u_x.2": (0.000110544786962, 0.000195644586002, 0.000160911434086, (3, 3, 3),
                  0.000159870919426),
        "u_y.2": (-4.55689665489e-06, 3.28527568779e-06, 5.74725453427e-07, (3, 3, 3),
                  1.05581311271e-06),
        "u_z.2": (-0.000198509047019, -2.96442816593e-05, -0.000135767443323, (3, 3, 3),
                  -0.000171843196902),
    }),
    "dirichlet_box": (
        still("LBMDirichletBC", {at: {"value": 1.1} for at in ORDER}, (5, 5, 5), "D3Q19"),
        False, {"rho.2": (1, 1.1, 1.0784, (1, 1, 1), 1)},
    ),
    "neumann_box": (
        still("LBMNeumannBC", {at: {"gradient": 0.001 if at == "left" else 0.1} for at in ORDER},
              (5, 5, 5), "D3Q19"),
        False, {"rho.2": (1, 1.04166666667, 1.01580666667, (1, 1, 1), 1)},
    ),
    "dirichlet_wall": (walled("LBMDirichletBC", "wall", value=1.1), False,
                       {"rho.2": (0, 1.1, 0.971900826446, (3, 3), 1)}),
    "dirichlet_regional": (walled("LBMDirichletBC", "regional", value=1.1), True,
                           {"rho.2": (0, 1.1, 0.971900826446, (3, 3), 1)}),
    "neumann_wall": (walled("LBMNeumannBC", "wall", gradient=0.1), False,
                     {"rho.2": (0, 1.1, 0.971900826446, (3, 3), 1)}),
    "neumann_regional": (walled("LBMNeumannBC", "regional", gradient=0.1), True,
                         {"rho.2": (0, 1.1, 0.971900826446, (3, 3), 1)}),
    "obstacle": (obstacle(), False, {
        "medium.3": (0, 1, 0.95867768595, (3, 3), 1),
        "rho.3": (0, 1.01088183157, 0.959971247967, (3, 3), 1.00003441069),
        "speed.3": (0, 0.0159621660766, 0.00955250252632, (3, 3), 0.0109285527564),
        "u_x.3": (0, 0.0159621183193, 0.00933508116385, (3, 3), 0.0102883851764),
        "u_y.3": (-0.00701048502292, 0.00701048560416, -1.73105452773e-10, (3, 3),
                  -0.003685430207),
    }),
    "vertical_velocity_bcs": (streamed((10, 10), "D2Q9", VERTICAL), False, {
        "rho.2": (0.832958312081, 1.00039996, 0.936668521468, (3, 3), 1),
        "u_x.2": (-0.199942917167, 0.200108000721, 0.00010011163709, (3, 3), 0.00015),
        "u_y.2": (-0.0908424287958, 0.0910449051744, 0.000341289589962, (3, 3), 0.0005),
    }),
    "mixed_bcs_d3q27": (streamed((10, 10, 10), "D3Q27", MIXED), False, {
        "rho.2": (1, 1.37777785278, 1.07556112556, (3, 3, 3), 1),
        "u_x.2": (0.000122221597517, 0.274302458859, 0.0549749360912, (3, 3, 3), 0.00015),
        "u_y.2": (0.000241935470701, 0.0005, 0.000415051909191, (3, 3, 3), 0.0005),
        "u_z.2": (*NONE, (3, 3, 3), 0.0),
    }),
}  # fmt: skip


COMPILED = ("channel2D", "obstacle", "neumann_regional")
"""Those that are compiled in every run of the tests."""

CASES = [
    pytest.param(name, jit, id=f"{name}-{'jit' if jit else 'direct'}",
                 marks=[pytest.mark.exhaustive] if jit and name not in COMPILED else [])
    for name in PUBLISHED for jit in (False, True)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::ingot.errors.IngotWarning")
@pytest.mark.parametrize(("name", "jit"), CASES)
def test_a_lattice_ends_as_published(name: str, jit: bool, tmp_path: Path) -> None:
    made, regions, digests = PUBLISHED[name]
    medium(tmp_path, regions=regions)
    (tmp_path / "case.i").write_text(made)
    run_file(tmp_path / "case.i", (), tmp_path, jit=jit)
    with h5py.File(tmp_path / "case.h5") as stored:
        fields = {key: np.asarray(stored[key]) for key in digests}
    for key, (least, most, mean, place, entry) in digests.items():
        field = fields[key]
        found = (field.min(), field.max(), field.mean(), field[place])
        assert found == pytest.approx((least, most, mean, entry), rel=1e-11, abs=1e-12), key
