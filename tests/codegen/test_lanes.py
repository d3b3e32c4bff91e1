"""lanes.h through a small driver: accuracy, special values, and bits that no width can change."""

import ctypes
import itertools
import re
import shutil
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ingot.types.elementwise import ELEMENTWISE

Array = NDArray[np.floating]

HEADER = Path(__file__).parents[2] / "src" / "ingot" / "codegen"
FLAGS = (
    *("-O2", "-march=native", "-fno-math-errno", "-ffp-contract=off", "-std=c++17"),
    *("-mprefer-vector-width=512", "-Wall", "-Wextra", "-Wno-psabi", "-Werror", f"-I{HEADER}"),
)
ONE = (
    *("exp", "expm1", "log", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "sqrt", "floor", "abs", "sign", "heaviside"),
    *("ceil", "trunc", "round", "log2", "asinh", "acosh", "atanh"),
)
TWO = ("pow", "min", "max", "atan2", "hypot", "remainder")
SIZES = (1, 2, 3, 5, 7, 8, 15, 31, 32, 64, 100, 127, 1000, 1075, 65537, 2**20)
WHOLE = (*SIZES, *(-n for n in SIZES))
SMOOTH = ONE[: ONE.index("sqrt")]
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "pow": "power",
         "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "round": "rint",
         "atan2": "arctan2"}  # fmt: skip
POSITIVE = (
    *(0.0, 0.5, 1.0, 2.0, 3.0, 708.5, 745.1, 747.0, 1e22, 2.0**52 + 1, 2.0**53),
    *(5e-324, 2.2e-308, 1e308, np.inf),
)
SPECIAL = np.array([*POSITIVE, *(-x for x in POSITIVE), np.nan])
DRIVER = """
#include "lanes.h"
#include "powers.h"
using namespace ingot;
#define LOOP(value) \\
  for (int64_t i = 0; i < size; i += W) { \\
    const int n = size - i < W ? int(size - i) : W; \\
    store(out + i, 1, n, value); \\
  }
#define ONE(f) extern "C" void run_##f(int64_t size, real* out, const real* x) { \\
  LOOP(ingot::f(load(x + i, 1, n))) }
#define TWO(f) extern "C" void run_##f(int64_t size, real* out, const real* x, const real* y) { \\
  LOOP(ingot::f(load(x + i, 1, n), load(y + i, 1, n))) }
#define POWN(name, exponent) \\
  extern "C" void run_##name(int64_t size, real* out, const real* x) { \\
    LOOP(ingot::pown<exponent>(load(x + i, 1, n))) }
extern "C" void run_fma(int64_t size, real* out, const real* x, const real* y, const real* z) {
  LOOP(ingot::fma(load(x + i, 1, n), load(y + i, 1, n), load(z + i, 1, n))) }
extern "C" void run_finite(int64_t size, real* out, const real* x) {
  LOOP(select(finite(load(x + i, 1, n)), splat(1), splat(0))) }
extern "C" void copy(const real* from, int64_t from_stride, int n, real* to, int64_t to_stride) {
  store(to, to_stride, n, load(from, from_stride, n)); }
extern "C" void fill(const real* from, int64_t stride, int n, real* to) {
  store(to, 1, W, load(from, stride, n)); }
extern "C" int first(int n) {
  const M mask = lanes(n);
  return count(mask) + 100 * any(mask) + 1000 * all(mask); }
"""


class Lanes:
    """The driver, compiled for one width and one type."""

    def __init__(self, folder: Path, real: str, width: int) -> None:
        self.dtype = np.dtype({"double": np.float64, "float": np.float32}[real])
        self.width = width
        library = folder / f"{real}{width}.so"
        defines = (f"-DW={width}", f"-DINGOT_REAL={real}")
        source = str(folder / "driver.cpp")
        shared = ("-shared", "-fPIC", "-o", str(library))
        subprocess.run(("g++", *FLAGS, *defines, source, *shared, "-lm"), check=True)
        self.library = ctypes.CDLL(str(library))

    def __call__(self, name: str, *arguments: Array) -> Array:
        given = [as_type(a, self.dtype) for a in arguments]
        out = np.empty_like(given[0])
        getattr(self.library, f"run_{name}")(ctypes.c_int64(out.size), *map(pointer, (out, *given)))
        return out


def pown(n: int) -> str:
    """The name of the driver's function for a whole exponent."""
    return f"pown_{abs(n)}" if n > 0 else f"pown_minus_{abs(n)}"


def as_type(array: Array, dtype: np.dtype[np.floating]) -> Array:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype)


def pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("lanes")
    calls = [f"ONE({f})" for f in ONE] + [f"TWO({f})" for f in TWO]
    calls += [f"POWN({pown(n)}, {n})" for n in WHOLE]
    (folder / "driver.cpp").write_text(DRIVER + "\n".join(calls) + "\n")
    return folder


@pytest.fixture(scope="session")
def doubles(folder: Path) -> dict[int, Lanes]:
    return {width: Lanes(folder, "double", width) for width in (1, 4, 8)}


@pytest.fixture(scope="session")
def wide(doubles: dict[int, Lanes]) -> Lanes:
    return doubles[8]


@pytest.fixture(scope="session")
def floats(folder: Path) -> Lanes:
    return Lanes(folder, "float", 8)


def either_sign(rng: np.random.Generator, low: float, high: float, size: int) -> Array:
    size_of = np.exp(rng.uniform(np.log(low), np.log(high), size))
    return size_of * rng.choice([-1.0, 1.0], size)


def arguments(name: str, size: int = 40_000) -> Array:
    """Wide random arguments from the domain of a function, dense where it is hard."""
    rng = np.random.default_rng(0)
    small, near = either_sign(rng, 1e-300, 1, size), rng.uniform(-3, 3, size)
    if name in ("log", "log10"):
        return np.abs(np.concatenate([either_sign(rng, 1e-320, 1e308, size), 1 + small, near]))
    if name == "log1p":
        positive = np.abs(either_sign(rng, 1, 1e308, size))
        return np.concatenate([small[small > -1], near[near > -1], positive])
    if name in ("asin", "acos"):
        return np.concatenate([small, rng.uniform(-1, 1, size)])
    if name in ("sin", "cos", "tan"):
        quarters = np.arange(size) * (np.pi / 2)
        return np.concatenate([small, near, quarters, either_sign(rng, 1, 1e12, size)])
    if name == "atan":
        return np.concatenate([small, near, either_sign(rng, 1, 1e308, size)])
    return np.concatenate([small, near, rng.uniform(-709, 709, size)])


def reference(name: str, *given: Array) -> NDArray[np.longdouble]:
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("needs a long double that is longer than double")
    with np.errstate(all="ignore"):
        function: Callable[..., NDArray[np.longdouble]] = getattr(np, NUMPY.get(name, name))
        return function(*(a.astype(np.longdouble) for a in given))


def worst(got: Array, exact: NDArray[np.longdouble]) -> float:
    """The largest error in units of the last place of a normal result."""
    size = np.maximum(np.abs(exact).astype(got.dtype), np.finfo(got.dtype).tiny)
    return float(np.max(np.abs(got - exact) / np.spacing(size)))


def same_bits(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", SMOOTH)
def test_a_function_of_doubles_is_accurate(wide: Lanes, name: str) -> None:
    given = arguments(name)
    limit = 3 if name in ("tan", "tanh") else 2
    assert worst(wide(name, given), reference(name, given)) < limit


@pytest.mark.parametrize("name", SMOOTH)
def test_a_function_of_floats_is_accurate(floats: Lanes, name: str) -> None:
    given = as_type(arguments(name)[::3], floats.dtype)
    exact = reference(name, given)
    usual = np.abs(exact) < np.finfo(np.float32).max
    assert worst(floats(name, given)[usual], exact[usual]) < 1


def test_pow_is_accurate_for_large_exponents(wide: Lanes) -> None:
    rng = np.random.default_rng(1)
    anywhere = np.abs(either_sign(rng, 1e-320, 1e308, 100_000))
    base = np.concatenate(
        [anywhere, rng.uniform(0.5, 2, 100_000), rng.uniform(1.4, 1.4143, 50_000)]
    )
    exponent = rng.uniform(-708, 708, base.size) / np.log(base)
    assert worst(wide("pow", base, exponent), reference("pow", base, exponent)) < 2


def test_pow_of_floats_is_accurate(floats: Lanes) -> None:
    rng = np.random.default_rng(2)
    base = as_type(np.abs(either_sign(rng, 1e-37, 1e37, 100_000)), floats.dtype)
    exponent = as_type(rng.uniform(-85, 85, base.size) / np.log(base), floats.dtype)
    assert worst(floats("pow", base, exponent), reference("pow", base, exponent)) < 1


def bases(n: int, dtype: np.dtype[np.floating]) -> Array:
    """Bases of either sign, whose power n lies in and about the range of a type."""
    rng = np.random.default_rng(abs(n))
    info = np.finfo(dtype)
    low, high = np.log(float(info.smallest_subnormal)) / 2, np.log(float(info.max)) / 2
    size = np.exp(np.clip(rng.uniform(2.2 * low, 2.2 * high, 20_000) / n, 2 * low, 2 * high))
    near = rng.uniform(0.5, 2, 20_000)
    return as_type(np.concatenate([size, near]) * rng.choice([-1.0, 1.0], 40_000), dtype)


@pytest.mark.parametrize("n", WHOLE)
def test_whole_powers_are_accurate_at_any_exponent(wide: Lanes, floats: Lanes, n: int) -> None:
    for lanes in (wide, floats):
        base = bases(n, lanes.dtype)
        exact = reference("pow", base, np.full_like(base, n))
        got = lanes(pown(n), base)
        usual = np.abs(exact) < np.finfo(lanes.dtype).max
        assert worst(got[usual], exact[usual]) < 2
        normal = usual & (np.abs(exact) > 1e20 * np.finfo(lanes.dtype).tiny)
        assert worst(got[normal], exact[normal]) < 0.51
        with np.errstate(over="ignore"):
            rounded = exact[~usual].astype(lanes.dtype)
        np.testing.assert_array_equal(got[~usual], rounded)


@pytest.mark.parametrize("n", WHOLE)
def test_whole_powers_of_special_values_are_those_of_c(wide: Lanes, floats: Lanes, n: int) -> None:
    for lanes in (wide, floats):
        base = as_type(SPECIAL, lanes.dtype)
        with np.errstate(all="ignore"):
            expected = np.power(base, lanes.dtype.type(n))
        got = lanes(pown(n), base)
        tiny = np.finfo(lanes.dtype).smallest_subnormal
        np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(lanes.dtype).eps, atol=tiny)
        known = ~np.isnan(expected)
        assert np.array_equal(np.signbit(got[known]), np.signbit(expected[known]))


def test_exp_and_pow_underflow_gradually(wide: Lanes) -> None:
    power = np.random.default_rng(3).uniform(-745, -700, 10_000)
    assert worst(wide("exp", power), reference("exp", power)) < 1
    base = np.full_like(power, 0.5)
    exact = reference("pow", base, -power * 1.44)
    assert worst(wide("pow", base, -power * 1.44), exact) < 1


@pytest.mark.parametrize("name", (*SMOOTH, "sqrt", "floor", "abs", *ONE[-7:]))
def test_special_values_are_those_of_c(wide: Lanes, name: str) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(np, NUMPY.get(name, name))(SPECIAL)
    got = wide(name, SPECIAL)
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=0)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got[known]), np.signbit(expected[known]))


def test_special_powers_are_those_of_c(wide: Lanes) -> None:
    base, exponent = np.array(list(itertools.product(SPECIAL, SPECIAL))).T
    with np.errstate(all="ignore"):
        expected = np.power(base, exponent)
    got = wide("pow", base, exponent)
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=0)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("name", ["atan2", "hypot"])
def test_special_values_of_two_are_those_of_c(wide: Lanes, name: str) -> None:
    a, b = np.array(list(itertools.product(SPECIAL, SPECIAL))).T
    with np.errstate(all="ignore"):
        expected = getattr(np, NUMPY.get(name, name))(a, b)
    np.testing.assert_allclose(wide(name, a, b), expected, rtol=1e-15, atol=0)


def test_remainders_are_those_of_torch(wide: Lanes) -> None:
    a, b = np.array(list(itertools.product(SPECIAL, SPECIAL))).T
    expected = torch.remainder(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    np.testing.assert_array_equal(wide("remainder", a, b), expected)


def test_min_and_max_keep_nan(wide: Lanes) -> None:
    a, b = np.array(list(itertools.product(SPECIAL, SPECIAL))).T
    np.testing.assert_array_equal(wide("min", a, b), np.minimum(a, b))
    np.testing.assert_array_equal(wide("max", a, b), np.maximum(a, b))


def test_signs_are_minus_one_zero_and_one(wide: Lanes) -> None:
    # torch's sign of NaN is zero
    sign = np.where(np.isnan(SPECIAL), 0.0, np.sign(SPECIAL))
    np.testing.assert_array_equal(wide("sign", SPECIAL), sign)
    np.testing.assert_array_equal(wide("heaviside", SPECIAL), (sign + 1) / 2)
    np.testing.assert_array_equal(wide("finite", SPECIAL), np.isfinite(SPECIAL))


def test_floor_and_sqrt_are_exact(wide: Lanes, floats: Lanes) -> None:
    near = either_sign(np.random.default_rng(4), 1e-3, 1e17, 20_000)
    for lanes in (wide, floats):
        given = near.astype(lanes.dtype)
        np.testing.assert_array_equal(lanes("floor", given), np.floor(given))
        np.testing.assert_array_equal(lanes("sqrt", np.abs(given)), np.sqrt(np.abs(given)))


@pytest.mark.parametrize("width", (1, 4, 8))
def test_fma_rounds_once(doubles: dict[int, Lanes], width: int) -> None:
    x, y = np.random.default_rng(5).uniform(1, 2, (2, 300))
    z = -x * y
    exact = [
        float(Fraction(a) * Fraction(b) + Fraction(c)) for a, b, c in zip(x, y, z, strict=True)
    ]
    np.testing.assert_array_equal(doubles[width]("fma", x, y, z), exact)


@pytest.mark.parametrize("name", (*ONE, *TWO, *map(pown, WHOLE)))
def test_every_width_gives_the_same_bits(doubles: dict[int, Lanes], name: str) -> None:
    rng = np.random.default_rng(6)
    given = rng.permutation(np.concatenate([SPECIAL, arguments(name, 3_000), arguments("", 3_000)]))
    pair = (given, rng.permutation(given))[: 2 if name in TWO else 1]
    results = [lanes(name, *pair) for lanes in doubles.values()]
    assert all(same_bits(results[0], other) for other in results[1:])


@pytest.mark.parametrize("name", (*SMOOTH, "pow"))
def test_a_lane_does_not_depend_on_its_neighbours(wide: Lanes, floats: Lanes, name: str) -> None:
    rng = np.random.default_rng(7)
    given = np.abs(arguments(name, 2_000))
    exponent = rng.uniform(-3, 3, given.size)
    pair = (given, exponent)[: 2 if name == "pow" else 1]
    for lanes in (wide, floats):
        alone = lanes(name, *pair)
        for place in range(lanes.width):
            blocks = [rng.choice(SPECIAL, (a.size, lanes.width)) for a in pair]
            for block, a in zip(blocks, pair, strict=True):
                block[:, place] = a
            mixed = lanes(name, *(block.ravel() for block in blocks))
            assert same_bits(alone, mixed.reshape(-1, lanes.width)[:, place])


@pytest.mark.parametrize("stride", (0, 1, 3))
def test_lanes_past_the_end_repeat_the_last_point(doubles: dict[int, Lanes], stride: int) -> None:
    points = np.arange(1.0, 40.0)
    for width, lanes in doubles.items():
        for n in range(1, width + 1):
            out = np.zeros(width)
            lanes.library.fill(pointer(points), ctypes.c_int64(stride), n, pointer(out))
            expected = points[np.minimum(np.arange(width), n - 1) * stride]
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("stride", (1, 2))
def test_store_writes_nothing_past_the_end(doubles: dict[int, Lanes], stride: int) -> None:
    points = np.arange(1.0, 40.0)
    for width, lanes in doubles.items():
        for n in range(1, width + 1):
            out = np.zeros(40)
            strides = ctypes.c_int64(1), ctypes.c_int64(stride)
            lanes.library.copy(pointer(points), strides[0], n, pointer(out), strides[1])
            expected = np.zeros(40)
            expected[: n * stride : stride] = points[:n]
            np.testing.assert_array_equal(out, expected)


def test_masks_count_their_lanes(doubles: dict[int, Lanes], floats: Lanes) -> None:
    for lanes in (*doubles.values(), floats):
        for n in range(lanes.width + 1):
            expected = n + 100 * (n > 0) + 1000 * (n == lanes.width)
            assert lanes.library.first(n) == expected


def test_fma_and_sqrt_are_single_instructions(folder: Path) -> None:
    macros = subprocess.run(
        ("g++", *FLAGS, "-dM", "-E", "-xc++", "/dev/null"),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    if "__FMA__" not in macros:
        pytest.skip("this machine has no fma instruction")
    source = folder / "one.cpp"
    source.write_text(
        '#include "lanes.h"\n'
        "ingot::V a(ingot::V x, ingot::V y) { return ingot::fma(x, y, ingot::sqrt(y)); }\n"
    )
    for real in ("double", "float"):
        command = ("g++", *FLAGS, f"-DINGOT_REAL={real}", "-S", str(source), "-o", "-")
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        kind = "pd" if real == "double" else "ps"
        assert sum(f"{kind}\t" in line for line in text.splitlines() if "vfmadd" in line) == 1
        assert text.count(f"vsqrt{kind}") == 1
        assert "call" not in text


def test_masks_are_negated_by_name() -> None:
    """A comparison is a bool on GPUs, of which ~ is always true."""
    for file in HEADER.glob("*.h"):
        if file.name not in ("lanes.h", "grid.h", "c_functions.h"):
            code = [row.partition("//")[0] for row in file.read_text().splitlines()]
            destructor = re.compile(r"~[A-Z]\w*\(\)")
            assert [row for row in code if "~" in destructor.sub("", row)] == [], file.name
    assert not [row.name for row in ELEMENTWISE.values() if "~" in row.cxx]
