"""User materials called from Python as hosts call them: a step in, the arrays after it out.

A call that ends its job ends the process, so such a one is made apart.
"""

import ctypes
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["call_apart", "call_umat", "call_vumat"]

UMAT = (
    "stress statev ddsdde sse spd scd rpl ddsddt drplde drpldt stran dstran time dtime temp dtemp"
    " predef dpred cmname ndi nshr ntens nstatv props nprops coords drot pnewdt celent dfgrd0"
    " dfgrd1 noel npt layer kspt kstep kinc"
)
VUMAT = (
    "nblock ndir nshr nstatev nfieldv nprops lanneal step_time total_time dt cmname coords lengths"
    " props density strain_inc spin temp_old stretch_old gradient_old field_old stress_old"
    " state_old energy_old inelastic_old temp_new stretch_new gradient_new field_new stress_new"
    " state_new energy_new inelastic_new"
)
COUNTS = (
    "nblock ndir ndi nshr ntens nstatv nstatev nfieldv nprops lanneal noel npt layer kspt kstep"
    " kinc"
)


def call_umat(
    library: Path, shape: tuple[int, int] = (3, 3), **given: Any
) -> dict[str, np.ndarray]:
    """One step of one point; what is not given is none, or zero. Matrices are as Fortran's."""
    ntens = sum(shape)
    props, statev = (np.ravel(given.get(k, ())) for k in ("props", "statev"))
    counts = {"ndi": shape[0], "nshr": shape[1], "ntens": ntens, "nprops": len(props),
              "nstatv": len(statev)}  # fmt: skip
    zero = dict.fromkeys(("stress", "stran", "dstran", "ddsddt", "drplde"), np.zeros(ntens))
    zero |= {"ddsdde": np.zeros((ntens, ntens)), "time": np.zeros(2), "coords": np.zeros(3)}
    unit = dict.fromkeys(("drot", "dfgrd0", "dfgrd1"), np.eye(3))
    values = {**zero, **unit, "pnewdt": 1.0, "dtime": 1.0, **given, **counts}
    return _call(library, "umat_", UMAT, values, np.float64)


def call_vumat(
    library: Path, real: type = np.float64, nshr: int = 3, **given: Any
) -> dict[str, np.ndarray]:
    """One step of a block; given: arrays (points, ...), of which strain_inc and state_old are."""
    points, nstatev = given["state_old"].shape
    ntens = 3 + nshr
    counts = {"nblock": points, "ndir": 3, "nshr": nshr, "nstatev": nstatev, "nfieldv": 0,
              "nprops": len(np.ravel(given.get("props", ())))}  # fmt: skip
    unit = np.repeat([[1.0] * 3 + [0.0] * nshr], points, 0)
    tensors = dict.fromkeys(("strain_inc", "stress_old", "stress_new"), np.zeros((points, ntens)))
    numbers = ("temp_old", "temp_new", "energy_old", "energy_new", "inelastic_old", "inelastic_new")
    values = {
        **tensors, **dict.fromkeys(("stretch_old", "stretch_new"), unit),
        **dict.fromkeys(numbers, np.zeros(points)), "density": np.ones(points),
        "state_new": np.full((points, nstatev), np.nan), **given, **counts,
    }  # fmt: skip
    return _call(library, "vumat_", VUMAT, values, real)


def _call(
    library: Path, name: str, words: str, values: dict[str, Any], real: type
) -> dict[str, np.ndarray]:
    """Call with all arrays in their order, each a copy in columns; give them back as they lie."""
    order, arrays = words.split(), {}
    for word in order:
        kind = np.int32 if word in COUNTS.split() else real
        value = np.asarray(values.get(word, 0), kind)
        arrays[word] = np.array(value if value.size else np.zeros(1), kind, order="F")
    arrays["cmname"] = np.frombuffer(b"MATERIAL".ljust(80), np.uint8)
    function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = None
    function(*(ctypes.c_void_p(arrays[word].ctypes.data) for word in order))
    return arrays


def call_apart(which: str, library: Path, *words: Any, **given: Any) -> str:
    """What a call says that ends its job."""
    code = (
        "import pickle, sys; from tests.hosts import called;"
        " which, words, given = pickle.load(sys.stdin.buffer);"
        " getattr(called, which)(*words, **given)"
    )
    told = pickle.dumps((which, (library, *words), given))
    done = subprocess.run([sys.executable, "-c", code], input=told, capture_output=True,
                          cwd=Path(__file__).parents[2], check=False)  # fmt: skip
    assert done.returncode == 1, done.stderr.decode()
    return done.stderr.decode()
