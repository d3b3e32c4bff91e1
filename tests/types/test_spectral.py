"""Principal values, exponentials and polar factors against torch, also where values are equal."""

from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import jacfwd

from ingot import types
from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read_text
from ingot.model import build
from ingot.program import freeze, prepared
from ingot.types import R2, SR2, Scalar, Vec
from tests.program.declared import declared
from tests.types.atoms import EPSILON, on_atoms, slopes_on_atoms, traced

DOUBLE = torch.float64
UNIT = torch.eye(3, dtype=DOUBLE)
GAPS = (0.0, 1e-12, 1e-8, 1e-4, 0.3)


def rotations(seed: int, count: int) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    q = torch.linalg.qr(torch.randn(count, 3, 3, generator=source, dtype=DOUBLE))[0]
    return q * torch.linalg.det(q)[:, None, None]


@st.composite
def principal_values(draw: Any) -> list[float]:
    """Three numbers, any two of them equal or nearly so, all equal, or zero."""
    first = draw(st.sampled_from([0.0, 1.0, -2.0, 0.3]))
    second = first + draw(st.sampled_from(GAPS))
    third = draw(st.sampled_from([first, second, first + 2.0, first - 1.0]))
    third += draw(st.sampled_from(GAPS))
    return [first, second, third]


def for_all(*drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Some examples of each, the same in every run."""
    return lambda test: settings(max_examples=60, deadline=None, derandomize=True)(
        given(*drawn)(test)
    )


seeds = st.integers(0, 10_000)


def turned(values: list[float], seed: int) -> Tensor:
    """A symmetric matrix with these principal values in some frame, or in the axes' own."""
    diagonal = torch.diag(torch.tensor(values, dtype=DOUBLE))
    if seed % 4 == 0:
        return diagonal
    q = rotations(seed, 1)[0]
    full = q @ diagonal @ q.T
    return (full + full.T) / 2.0


def mandel(full: Tensor) -> Tensor:
    return types.sym(R2(full)).data


def frechet(a: Tensor) -> Tensor:
    """The derivative (9, 9) of the matrix exponential, from exponentials of block matrices."""
    blocks = torch.zeros(9, 6, 6, dtype=DOUBLE)
    blocks[:, :3, :3] = blocks[:, 3:, 3:] = a
    blocks[:, :3, 3:] = torch.eye(9, dtype=DOUBLE).reshape(9, 3, 3)
    return torch.matrix_exp(blocks)[:, :3, 3:].reshape(9, 9).T


def values_of(a: SR2) -> Vec:
    return types.eigh3(a).eigenvalues


def vectors_of(a: SR2) -> R2:
    return types.eigh3(a).eigenvectors


def rotation_of(f: R2) -> R2:
    return types.polar(f).rotation


def stretch_of(f: R2) -> SR2:
    return types.polar(f).stretch


@for_all(principal_values(), seeds)
def test_principal_values_and_directions_make_the_tensor(values: list[float], seed: int) -> None:
    a = turned(values, seed)
    found, v = types.eigh3(SR2(mandel(a)))
    size = float(a.abs().max())
    torch.testing.assert_close(found.data, torch.linalg.eigvalsh(a), rtol=0, atol=4e-15 * size)
    assert torch.equal(found.data, found.data.sort().values)
    torch.testing.assert_close(v.data.T @ v.data, UNIT, rtol=0, atol=4e-15)
    assert float(torch.linalg.det(v.data)) == pytest.approx(1.0, abs=4e-15)
    torch.testing.assert_close(a @ v.data, v.data * found.data, rtol=0, atol=1e-14 * size)
    assert jacfwd(lambda x: values_of(SR2(x)).data)(mandel(a)).isfinite().all()
    assert jacfwd(lambda x: vectors_of(SR2(x)).data)(mandel(a)).isfinite().all()


@pytest.mark.parametrize(
    ("dtype", "sizes"), [(DOUBLE, (1e-139, 1e153)), (torch.float32, (1e-18, 1e18))]
)
def test_principal_values_are_right_in_the_range_that_is_told(
    dtype: torch.dtype, sizes: tuple[float, float]
) -> None:
    a = turned([-0.4, -0.1, 0.5], 1)
    a = a / torch.linalg.norm(a - UNIT * a.trace() / 3.0)
    program = freeze(traced(values_of, SR2(mandel(a))), torch.finfo(dtype).eps)
    run = Interpreter(program, dtype=dtype)
    for size in sizes:
        found = run({"a0": (mandel(a) * size).to(dtype)})[0]["out"].double() / size
        torch.testing.assert_close(
            found, torch.linalg.eigvalsh(a), rtol=0, atol=8 * torch.finfo(dtype).eps
        )


@for_all(st.sampled_from([1e-4, 1e-2, 1.0]), st.booleans(), seeds)
def test_slopes_at_distinct_values_are_those_of_perturbation_theory(
    gap: float, above: bool, seed: int
) -> None:
    values = [1.0, 1.0 + gap, 3.0] if above else [-1.0, 1.0, 1.0 + gap]
    a = turned(values, seed)
    w, v = torch.linalg.eigh(a)
    own = vectors_of(SR2(mandel(a))).data
    v = v * (v * own).sum(0).sign()
    along = torch.stack([types.r2_from_sr2(SR2(e)).data for e in torch.eye(6, dtype=DOUBLE)])
    inside = v.T @ along @ v
    apart = w[None, :] - w[:, None] + torch.eye(3, dtype=DOUBLE)
    turn = inside / apart * (1.0 - torch.eye(3, dtype=DOUBLE))
    by_value = jacfwd(lambda x: values_of(SR2(x)).data)(mandel(a))
    by_vector = jacfwd(lambda x: vectors_of(SR2(x)).data)(mandel(a))
    torch.testing.assert_close(by_value, inside.diagonal(dim1=1, dim2=2).T, rtol=0, atol=3e-11)
    expected = (v @ turn).permute(1, 2, 0)
    torch.testing.assert_close(by_vector, expected, rtol=0, atol=1e-11 / gap**2)


def test_equal_values_share_their_slopes_whatever_the_frame() -> None:
    for seed in range(4, 8):
        a = mandel(turned([2.0, 2.0, 5.0], seed))
        low, high, lone = jacfwd(lambda x: values_of(SR2(x)).data)(a)
        direction = torch.linalg.eigh(turned([2.0, 2.0, 5.0], seed))[1][:, 2]
        dyad = mandel(torch.outer(direction, direction))
        torch.testing.assert_close(lone, dyad, rtol=0, atol=1e-13)
        plane = (SR2.identity().data - dyad) / 2.0
        torch.testing.assert_close(low, plane, rtol=0, atol=1e-13)
        torch.testing.assert_close(high, plane, rtol=0, atol=1e-13)
    for third in jacfwd(lambda x: values_of(SR2(x)).data)(SR2.fill(-7.0).data):
        torch.testing.assert_close(third, SR2.identity().data / 3.0, rtol=0, atol=1e-14)


@for_all(
    st.sampled_from([0.0, 1e-12, 1e-3, 0.5, 3.0, 20.0]),
    st.sampled_from(["any", "symmetric", "skew", "nilpotent", "equal", "spherical"]),
    seeds,
)
def test_exponential_and_its_slope_are_those_of_torch(size: float, shape: str, seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    a = torch.randn(3, 3, generator=source, dtype=DOUBLE) * size
    a = {
        "any": a,
        "symmetric": a + a.T,
        "skew": a - a.T,
        "nilpotent": torch.triu(a, 1),
        "equal": turned([size, size, -size], seed),
        "spherical": UNIT * size,
    }[shape]
    expected, slope = torch.matrix_exp(a), frechet(a)
    near = 1e-13 * (1.0 + size)
    found = types.expm3(R2(a)).data
    torch.testing.assert_close(found, expected, rtol=0, atol=near * float(expected.abs().max()))
    by = jacfwd(lambda x: types.expm3(R2(x)).data)(a).reshape(9, 9)
    torch.testing.assert_close(by, slope, rtol=0, atol=near * float(slope.abs().max()))
    if torch.equal(a, a.T):
        symmetric = types.r2_from_sr2(types.expm3(SR2(mandel(a)))).data
        torch.testing.assert_close(symmetric, expected, rtol=0, atol=near * float(expected.max()))


def test_exponential_has_the_digits_of_many_digit_arithmetic() -> None:
    source = torch.Generator().manual_seed(3)
    for size in (0.01, 1.0, 30.0):
        a = torch.randn(3, 3, generator=source, dtype=DOUBLE) * size
        with mpmath.workdps(60):
            exact = mpmath.expm(mpmath.matrix(a.tolist()), method="taylor")
            rows = [[float(exact[i, j]) for j in range(3)] for i in range(3)]
        expected = torch.tensor(rows, dtype=DOUBLE)
        error = (types.expm3(R2(a)).data - expected).abs().max() / expected.abs().max()
        assert float(error) < 4e-15 * (1.0 + size)


def test_exponential_is_not_a_number_where_it_is_not_computed() -> None:
    assert types.expm3(R2(torch.diag(torch.tensor([3000.0, 0.0, 0.0])).double())).data.isnan().all()
    assert types.expm3(R2(UNIT * -5000.0)).data.eq(0.0).all()


@for_all(
    st.sampled_from(
        [(1, 1, 1), (2, 2, 2), (1.3, 1.3, 0.7), (0.7, 1.3, 1.3), (0.5, 1, 2), (1, 1, 1e-3),
         (1, 1 + 1e-12, 1 + 1e-8), (1e-3, 1, 30), (100, 1, 1 + 1e-4), (1e-5, 2e-5, 1e-5)]
    ),
    st.booleans(),
    seeds,
)  # fmt: skip
def test_polar_factors_and_their_slopes_are_those_of_singular_values(
    stretches: tuple[float, ...], reflects: bool, seed: int
) -> None:
    left, right = rotations(seed, 2)
    left = -left if reflects else left
    s = torch.tensor(stretches, dtype=DOUBLE)
    f = left @ torch.diag(s) @ right
    r, u = types.polar(R2(f))
    conditioning = float(s.max() / s.sort().values[:2].sum())
    near = 1e-14 * (1.0 + conditioning)
    torch.testing.assert_close(r.data, left @ right, rtol=0, atol=near)
    stretch = right.T @ torch.diag(s) @ right
    torch.testing.assert_close(
        types.r2_from_sr2(u).data, stretch, rtol=0, atol=near * float(s.max())
    )
    along = torch.eye(9, dtype=DOUBLE).reshape(9, 3, 3)
    inside = left.T @ along @ right.T
    spin = (inside - inside.mT) / (s[:, None] + s[None, :])
    expected = (left @ spin @ right).permute(1, 2, 0).reshape(3, 3, 3, 3)
    by = jacfwd(lambda x: rotation_of(R2(x)).data)(f)
    bound = near * float(expected.abs().max())
    torch.testing.assert_close(by, expected, rtol=0, atol=4.0 * bound)
    # U = R^T F, so that dU = R^T (dF - dR U)
    change = (left @ right).T @ (along - left @ spin @ right @ stretch)
    by = jacfwd(lambda x: types.r2_from_sr2(stretch_of(R2(x))).data)(f)
    expected = change.permute(1, 2, 0).reshape(3, 3, 3, 3)
    torch.testing.assert_close(by, expected, rtol=0, atol=8.0 * near * conditioning)


@for_all(st.sampled_from([(1.0, 1.0), (2.0, 0.5), (1.0, 1e-3)]), seeds)
def test_polar_of_rank_two_is_the_rotation(stretches: tuple[float, float], seed: int) -> None:
    left, right = rotations(seed, 2)
    f = left @ torch.diag(torch.tensor([*stretches, 0.0], dtype=DOUBLE)) @ right
    near = 1e-14 / min(stretches)
    torch.testing.assert_close(rotation_of(R2(f)).data, left @ right, rtol=0, atol=near)
    assert jacfwd(lambda x: rotation_of(R2(x)).data)(f).isfinite().all()


@pytest.mark.parametrize("diagonal", [(0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.0, 0.0, -1.0)])
def test_polar_of_lower_rank_is_finite(diagonal: tuple[float, ...]) -> None:
    f = torch.diag(torch.tensor(diagonal, dtype=DOUBLE))
    assert torch.equal(rotation_of(R2(f)).data, UNIT)
    assert not jacfwd(lambda x: rotation_of(R2(x)).data)(f).any()


SYMMETRIC = torch.stack(
    [turned(v, k) for k, v in enumerate([
        [0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [1.0, 0.0, -1.0], [1.0, 1.0, 3.0], [-3.0, 1.0, 1.0],
        [1.0, 1.0 + 1e-4, 3.0], [0.3, 1.1, 2.0], [-1.0, 0.5, 0.6],
    ])]
)  # fmt: skip
FULL = torch.stack(
    [UNIT, UNIT * 1.3, *(q @ (UNIT + 0.2 * k * m) for k, (q, m) in enumerate(zip(
        rotations(7, 5), SYMMETRIC[[3, 4, 5, 6, 7]], strict=True)))]
)  # fmt: skip
# what is taken of each, of which kind, at which points
CASES: dict[str, tuple[Callable[..., Any], SR2 | R2]] = {
    "principal values": (values_of, SR2(mandel(SYMMETRIC))),
    "directions": (vectors_of, SR2(mandel(SYMMETRIC))),
    "exponential": (types.expm3, R2(FULL)),
    "symmetric exponential": (types.expm3, SR2(mandel(SYMMETRIC))),
    "rotation": (rotation_of, R2(FULL)),
    "stretch": (stretch_of, R2(FULL)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes_on_atoms_are_those_on_tensors(name: str) -> None:
    function, value = CASES[name]
    expected = function(value)
    torch.testing.assert_close(on_atoms(function, value), expected.data, rtol=1e-12, atol=1e-13)
    kind = type(value)
    by = torch.stack([jacfwd(lambda x: function(kind(x)).data)(x) for x in value.data])
    for reverse in (False, True):
        found = slopes_on_atoms(function, value, reverse=reverse)
        torch.testing.assert_close(found, by.reshape(found.shape), rtol=1e-9, atol=1e-9)


def test_one_kernel_holds_them_all() -> None:
    def all_of_them(f: R2) -> Scalar:
        r, u = types.polar(f)
        w, v = types.eigh3(u)
        log = types.expm3(types.rotate(u, r) * 0.1)
        whole = types.einsum("ij,jk,k->i", v, types.expm3(f * 0.1), w)
        return types.norm(whole) + types.tr(types.inv(u)) + types.tr(types.inv(log))

    value = R2(FULL)
    program = traced(all_of_them, value)
    expected = all_of_them(value).data
    found = Kernel(freeze(program, EPSILON))({"a0": value.data})[0]["out"]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(
        slopes_on_atoms(all_of_them, value, kernel=True, reverse=True),
        slopes_on_atoms(all_of_them, value),
        rtol=1e-9,
        atol=1e-9,
    )


def HenckyEnergy(deformation: R2) -> Scalar:
    """Of the logarithms of the stretches."""
    values = types.eigh3(types.polar(deformation).stretch).eigenvalues
    logs = types.log(values)
    return types.inner(logs, logs) * 0.5


def test_a_law_of_principal_stretches_has_its_stress() -> None:
    rows = """[Models]
      [energy]
        type = HenckyEnergy
      []
      [stress]
        type = Normality
        model = energy
        function = out
        from = deformation
        to = stress
      []
    []"""
    with declared(HenckyEnergy):
        program = prepared(build(read_text(rows), "stress"))
    found = Interpreter(program)({"deformation": FULL})[0]["stress"]
    # W = sum log(s)^2 / 2, so that dW/dF = R sum (log s / s) N N^T
    u, s, v = torch.linalg.svd(FULL)
    expected = u @ torch.diag_embed(s.log() / s) @ v
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def SecondDerivative(deformation: R2) -> Scalar:
    """Isotropic, so that all orders of its derivative exist at equal stretches."""
    return types.tr(types.polar(deformation).stretch) + types.tr(types.expm3(deformation))


def test_slopes_of_slopes_exist_at_equal_stretches() -> None:
    def energy(x: Tensor) -> Tensor:
        return SecondDerivative(R2(x)).data

    def expected(x: Tensor) -> Tensor:
        return torch.linalg.svdvals(x).sum() + torch.matrix_exp(x).trace()

    found = torch.func.hessian(energy)(UNIT)
    assert found.isfinite().all()
    step = 1e-4
    generator = torch.Generator().manual_seed(5)
    for _ in range(5):
        d = torch.randn(3, 3, generator=generator, dtype=DOUBLE)
        second = expected(UNIT + step * d) - 2.0 * expected(UNIT) + expected(UNIT - step * d)
        along = torch.einsum("ij,ijkl,kl", d, found, d)
        assert float(along) == pytest.approx(float(second) / step**2, rel=1e-5)


@pytest.mark.parametrize(
    ("function", "message", "remedy"),
    [
        (lambda f: torch.linalg.svd(f)[1], "uses torch.linalg.svd", "ingot.types.polar(f)"),
        (lambda f: torch.linalg.eig(f)[0], "uses torch.linalg.eig", "ingot.types.eigh3(a)"),
        (lambda f: torch.linalg.solve(f, f), "uses torch.linalg.solve", "ingot.types.inv(a) @ b"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_the_way_out(
    function: Callable[..., Any], message: str, remedy: str
) -> None:
    with pytest.raises(IngotError) as refused:
        traced(function, R2(UNIT))
    (problem,) = refused.value.problems
    assert message in problem.message and remedy in (problem.fix or "")


BUDGET = {  # operations of a value; a change that adds some says why
    # products with zeros of the identity are kept, since 0 * inf is NaN
    "principal values": 220, "directions": 260, "exponential": 395,
    "symmetric exponential": 360, "rotation": 355, "stretch": 390,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operations_stay_within_their_budget(name: str) -> None:
    function, value = CASES[name]
    assert traced(function, value).count() <= BUDGET[name]
