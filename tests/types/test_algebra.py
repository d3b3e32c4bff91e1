"""The algebra of small values: identities that hold for all of them, and their corners."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import grad, jacfwd

from ingot import types
from ingot.types import MRP, R2, SR2, SSR4, WR2, MillerIndex, Quaternion, Scalar, Value, Vec
from tests.types.atoms import on_atoms

SQRT2 = math.sqrt(2.0)
EPSILON = torch.finfo(torch.float64).eps


def for_all(*drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Some examples of each, the same in every run."""
    return lambda test: settings(max_examples=25, deadline=None, derandomize=True)(
        given(*drawn)(test)
    )


def numbers(count: int, size: float = 10.0) -> st.SearchStrategy[Tensor]:
    entry = st.floats(-size, size, allow_subnormal=False)
    return st.lists(entry, min_size=count, max_size=count).map(
        lambda x: torch.tensor(x, dtype=torch.float64)
    )


vecs = numbers(3).map(Vec)
axials = numbers(3).map(WR2)
sr2s = numbers(6).map(SR2)
r2s = numbers(9).map(lambda x: R2(x.reshape(3, 3)))
turns = numbers(3, 1.0).map(MRP)


def close(a: Value | Tensor, b: Value | Tensor | float, size: float = 1.0) -> None:
    left, right = (x.data if isinstance(x, Value) else x for x in (a, b))
    right = torch.as_tensor(right, dtype=torch.float64)
    torch.testing.assert_close(left, right.expand_as(left), rtol=1e-11, atol=1e-12 * size)


def full(a: SR2) -> Tensor:
    """The matrix of a symmetric tensor, written out from what Mandel storage means."""
    d, s = a.data, a.data / SQRT2
    rows = [[d[0], s[5], s[4]], [s[5], d[1], s[3]], [s[4], s[3], d[2]]]
    return torch.stack([torch.stack(row) for row in rows])


@for_all(sr2s)
def test_deviator_has_no_trace_and_with_the_volume_is_the_whole(a: SR2) -> None:
    close(types.tr(types.dev(a)), 0.0, 100.0)
    close(types.dev(a) + types.vol(a), a)
    close(types.tr(types.vol(a)), types.tr(a))
    close(types.dev(types.dev(a)), types.dev(a))


@for_all(sr2s, sr2s)
def test_mandel_inner_product_is_that_of_the_matrices(a: SR2, b: SR2) -> None:
    close(types.inner(a, b), (full(a) * full(b)).sum(), 100.0)
    close(types.norm(a), torch.linalg.matrix_norm(full(a)))
    close(types.r2_from_sr2(a), full(a))
    close(types.sym(types.r2_from_sr2(a)), a)


@for_all(r2s)
def test_matrix_is_its_symmetric_and_its_skew_part(a: R2) -> None:
    whole = types.r2_from_sr2(types.sym(a)) + types.r2_from_wr2(types.skew(a))
    close(whole, a)
    close(types.transpose(types.transpose(a)), a)


@for_all(axials, vecs)
def test_skew_matrix_is_the_vector_product(w: WR2, v: Vec) -> None:
    close(types.r2_from_wr2(w) @ v, torch.linalg.cross(w.data, v.data), 100.0)
    close(types.cross(w, v), torch.linalg.cross(w.data, v.data), 100.0)
    close(types.skew(types.r2_from_wr2(w)), w)


@for_all(sr2s, r2s, axials, vecs, turns)
def test_rotation_preserves_invariants(a: SR2, f: R2, w: WR2, v: Vec, r: MRP) -> None:
    q = types.euler_rodrigues(r)
    for value in (a, f, w, v):
        close(types.norm(types.rotate(value, q)), types.norm(value), 10.0)
    for tensor in (a, f):
        close(types.tr(types.rotate(tensor, q)), types.tr(tensor), 100.0)
        close(types.det(types.rotate(tensor, q)), types.det(tensor), 1e5)


@for_all(sr2s, r2s, axials, vecs, turns)
def test_rotation_is_that_of_the_matrices(a: SR2, f: R2, w: WR2, v: Vec, r: MRP) -> None:
    q = types.euler_rodrigues(r)
    close(types.r2_from_sr2(types.rotate(a, q)), q.data @ full(a) @ q.data.T, 100.0)
    close(types.rotate(f, q), q.data @ f.data @ q.data.T, 100.0)
    close(types.rotate(v, q), q.data @ v.data, 100.0)
    turned = q.data @ types.r2_from_wr2(w).data @ q.data.T
    close(types.r2_from_wr2(types.rotate(w, q)), turned, 100.0)


@for_all(sr2s, axials, r2s)
def test_rotation_by_any_matrix_is_the_part_of_the_full_product(a: SR2, w: WR2, q: R2) -> None:
    close(types.rotate(a, q), types.sym(R2(q.data @ full(a) @ q.data.T)), 1e4)
    product = R2(q.data @ types.r2_from_wr2(w).data @ q.data.T)
    close(types.rotate(w, q), types.skew(product), 1e4)


@for_all(turns)
def test_rotation_matrix_is_orthogonal_and_turns_by_the_angle_told(r: MRP) -> None:
    q = types.euler_rodrigues(r)
    close(q.data @ q.data.T, torch.eye(3, dtype=torch.float64))
    close(types.det(q), 1.0)
    angle = 4.0 * math.atan(float(types.norm(r)))
    close(types.tr(q), 1.0 + 2.0 * math.cos(angle))
    close(types.rotate(Vec(r.data), q), r.data)


@for_all(turns, turns)
def test_composed_rotation_is_the_product_of_matrices(a: MRP, b: MRP) -> None:
    product = types.euler_rodrigues(a).data @ types.euler_rodrigues(b).data
    close(types.euler_rodrigues(types.compose(a, b)), product, 10.0)
    close(types.compose(a, MRP.identity()), a)
    close(types.compose(MRP.identity(), a), a)


@for_all(numbers(3, 1.2).map(WR2))
def test_spin_becomes_the_rotation_of_the_reference(w: WR2) -> None:
    s = float(w.data @ w.data)
    scale = 0.25 + 5.0 * s * s / 96.0
    if s > EPSILON ** (1 / 3):
        scale = math.tan(s / 2) / (2 * s * math.cos(s / 2))
    close(types.exp_map(w), w.data * scale)


def test_a_scalar_is_assembled_of_one_number() -> None:
    assert Scalar.of(2.0).data.tolist() == 2.0
    assert Scalar.of(Scalar(torch.ones(3))).data.shape == (3,)


def test_small_spin_turns_by_a_quarter_of_its_tangent_and_by_the_angle() -> None:
    def turn(w: Tensor) -> Tensor:
        return types.exp_map(WR2(w)).data

    zero = torch.zeros(3, dtype=torch.float64)
    close(turn(zero), 0.0)
    close(jacfwd(turn)(zero), 0.25 * torch.eye(3, dtype=torch.float64))
    tiny = types.euler_rodrigues(types.exp_map(WR2([0.0, 0.0, 1e-4])))
    close(tiny[1, 0], math.sin(1e-4))


def test_both_branches_of_the_spin_meet() -> None:
    edge = math.sqrt(EPSILON ** (1 / 3))
    below, above = (types.exp_map(WR2([edge * f, 0.0, 0.0])).data[0] for f in (1 - 1e-9, 1 + 1e-9))
    assert abs(float(above - below)) < 1e-8 * edge


@for_all(r2s)
def test_determinant_and_inverse_are_those_of_torch(a: R2) -> None:
    close(types.det(a), torch.linalg.det(a.data), 1e3)
    shifted = a + R2.identity() * 40.0
    close(types.inv(shifted), torch.linalg.inv(shifted.data))
    close(types.inv(shifted) @ shifted, torch.eye(3, dtype=torch.float64))


@for_all(sr2s, numbers(36), turns, numbers(4))
def test_inverse_of_every_kind_undoes_it(a: SR2, c: Tensor, r: MRP, q: Tensor) -> None:
    shifted = a + SR2.identity() * 40.0
    close(types.inv(shifted), types.sym(R2(torch.linalg.inv(full(shifted)))))
    half = c.reshape(6, 6)
    stiffness = SSR4(half @ half.T + torch.eye(6, dtype=torch.float64))
    inverse = torch.linalg.inv(stiffness.data)
    error = (types.inv(stiffness).data - inverse).abs().max() / inverse.abs().max()
    assert float(error) < 1e-14 * float(torch.linalg.cond(stiffness.data)) ** 1.5
    unsymmetric = SSR4(half + 100.0 * torch.eye(6, dtype=torch.float64))
    close(types.inv(unsymmetric), torch.linalg.inv(unsymmetric.data))
    close(types.compose(types.inv(r), r), 0.0)
    close(types.inv(Scalar(q[0] + 20.0)), 1.0 / (q[0] + 20.0))
    w, x, y, z = (q + 11.0).tolist()
    back = types.inv(Quaternion([w, x, y, z])).data * (w * w + x * x + y * y + z * z)
    close(back, torch.tensor([w, -x, -y, -z], dtype=torch.float64))


@for_all(numbers(36), sr2s, turns, turns, numbers(4))
def test_rotation_of_every_kind_is_that_of_its_tensor(
    c: Tensor, a: SR2, r: MRP, b: MRP, x: Tensor
) -> None:
    q = types.euler_rodrigues(r)
    stiffness = SSR4(c.reshape(6, 6))
    turned = types.rotate(stiffness, q) @ types.rotate(a, q)
    close(turned, types.rotate(stiffness @ a, q), 1e4)
    close(types.rotate(Scalar(x[0]), q), x[0])
    product = q.data @ types.euler_rodrigues(b).data @ q.data.T
    close(types.euler_rodrigues(types.rotate(b, q)), product, 10.0)
    expected = torch.cat([x[:1], q.data @ x[1:]])
    close(types.rotate(Quaternion(x), q), expected, 100.0)


@for_all(sr2s)
def test_determinant_of_a_symmetric_tensor_is_that_of_its_matrix(a: SR2) -> None:
    close(types.det(a), torch.linalg.det(full(a)), 1e3)


@for_all(sr2s, sr2s, sr2s)
def test_dyadic_product_acts_on_a_tensor(a: SR2, b: SR2, c: SR2) -> None:
    close(types.outer(a, b) @ c, a * types.inner(b, c), 1e3)


@for_all(sr2s)
def test_fourth_order_units_do_what_they_are_called(a: SR2) -> None:
    close(SSR4.identity_sym() @ a, a)
    close(SSR4.identity_vol() @ a, types.vol(a), 10.0)
    close(SSR4.identity_dev() @ a, types.dev(a), 10.0)
    close(SSR4.identity() @ a, SR2.identity() * types.tr(a), 10.0)
    close((SSR4.identity_dev() @ SSR4.identity_vol()).data, 0.0)


@for_all(numbers(6))
def test_fill_scales_the_shear_of_a_symmetric_tensor(x: Tensor) -> None:
    xx, yy, zz, yz, xz, xy = x.tolist()
    matrix = torch.tensor([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=torch.float64)
    close(types.r2_from_sr2(SR2.fill(xx, yy, zz, yz, xz, xy)), matrix)
    close(SR2.fill(xx, yy, zz), torch.tensor([xx, yy, zz, 0, 0, 0], dtype=torch.float64))
    close(SR2.fill(xx), torch.tensor([xx, xx, xx, 0, 0, 0], dtype=torch.float64))
    close(SR2.of(*x.tolist()), x)


def test_fill_of_other_kinds_is_raw_and_row_by_row() -> None:
    close(R2.fill(*range(9)), torch.arange(9.0).double().reshape(3, 3))
    close(Vec.fill(1, 2, 3), torch.tensor([1.0, 2.0, 3.0]).double())
    with pytest.raises(ValueError, match="Vec has 3 components"):
        Vec.fill(1, 2)


@pytest.mark.parametrize("kind", [Vec, SR2, R2, WR2, MRP])
def test_norm_and_its_slope_vanish_at_zero(kind: type[Value]) -> None:
    zero = kind.zeros().data
    assert float(types.norm(kind(zero))) == 0.0
    assert torch.equal(grad(lambda x: types.norm(kind(x)).data)(zero), zero)
    close(types.norm(kind(zero), 4.0), 2.0)


@for_all(sr2s)
def test_norm_takes_its_epsilon_unsquared(a: SR2) -> None:
    close(types.norm(a, 0.25), (a.data.square().sum() + 0.25).sqrt())
    close(types.unit(a, 0.25) * types.norm(a, 0.25), a)


def test_steps_take_their_middle_at_zero() -> None:
    x = Scalar([-2.0, 0.0, 3.0])
    close(types.sign(x), torch.tensor([-1.0, 0.0, 1.0]).double())
    close(types.heaviside(x), torch.tensor([0.0, 0.5, 1.0]).double())
    close(types.macaulay(x), torch.tensor([0.0, 0.0, 3.0]).double())
    close(types.clamp(x, -1.0, 2.0), torch.tensor([-1.0, 0.0, 2.0]).double())


def test_a_tie_takes_the_second() -> None:
    def slope(function: object) -> list[float]:
        one = torch.tensor(1.0, dtype=torch.float64)
        pair = grad(lambda a, b: function(Scalar(a), Scalar(b)).data, argnums=(0, 1))  # type: ignore[operator]
        return [float(x) for x in pair(one, one)]

    assert slope(types.maximum) == [0.0, 1.0]
    assert slope(types.minimum) == [0.0, 1.0]


def test_a_number_is_compared_in_the_precision_of_the_value() -> None:
    tenth = Scalar(0.1)
    assert not bool(tenth < 0.1)
    assert bool(tenth <= 0.1) and bool(tenth == 0.1) and not bool(tenth != 0.1)
    close(types.minimum(Scalar(0.1), 0.1), 0.1)


def test_equal_values_are_found_by_value() -> None:
    x = Scalar([1.0, 2.0, 3.0])
    close(types.where(x == 2.0, 10.0, x), torch.tensor([1.0, 10.0, 3.0]).double())
    close(types.where(x != 2.0, 10.0, x), torch.tensor([10.0, 2.0, 10.0]).double())
    assert (x == None) is False  # noqa: E711 - a value is never None


def test_a_choice_between_numbers_is_a_value() -> None:
    close(types.where(Scalar([1.0, -1.0]) > 0.0, 2.0, 3.0), torch.tensor([2.0, 3.0]).double())


@for_all(sr2s, numbers(1))
def test_scalar_and_number_spread_over_components(a: SR2, x: Tensor) -> None:
    scalar = Scalar(x[0])
    close(a * scalar, a.data * x)
    close(scalar * a, a.data * x)
    close(a + scalar, a.data + x)
    close(2.0 - scalar, 2.0 - x[0])
    close(a * 2.0, a.data * 2)
    close(-a, -a.data)
    close(a * a, a.data**2)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SR2.zeros() + Vec.zeros(),
        lambda: types.inner(SR2.zeros(), Vec.zeros()),
        lambda: SR2.zeros() @ Vec.zeros(),
        lambda: types.rotate(MillerIndex.zeros(), R2.identity()),
        lambda: types.inv(Vec.zeros()),
        lambda: types.inv(WR2.zeros()),
        lambda: SR2(Vec.zeros()),
    ],
)
def test_kinds_that_do_not_go_together_are_refused(wrong: object) -> None:
    with pytest.raises(TypeError):
        wrong()  # type: ignore[operator]


def test_shape_must_end_in_that_of_the_kind() -> None:
    with pytest.raises(ValueError, match=r"SR2 needs a trailing shape \(6,\), got \(3,\)"):
        SR2(torch.zeros(3))
    with pytest.raises(ValueError, match="1 sub-batch axes, not 2"):
        Scalar(Scalar(torch.zeros(3, 4), sub_batch_ndim=1), sub_batch_ndim=2)


def test_more_structural_axes_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="no 2 sub-batch axes"):
        Scalar(torch.zeros(3), sub_batch_ndim=2)


@pytest.mark.parametrize("kind", [Vec, SR2, WR2, MRP, MillerIndex, Quaternion])
def test_numbers_in_any_sequence_become_components(kind: type[Value]) -> None:
    row = [float(i) for i in range(kind.base[0])]
    assert torch.equal(kind(row).data, kind(tuple(row)).data)
    assert kind(row).data.dtype == torch.float64


FUNCTIONS = {
    "dev": (types.dev, [SR2]),
    "vol": (types.vol, [SR2]),
    "tr": (types.tr, [SR2]),
    "tr of R2": (types.tr, [R2]),
    "norm": (types.norm, [SR2]),
    "norm with eps": (lambda a: types.norm(a, 0.5), [Vec]),
    "unit": (types.unit, [Vec]),
    "inner": (types.inner, [R2, R2]),
    "outer": (types.outer, [SR2, SR2]),
    "cross": (types.cross, [Vec, Vec]),
    "transpose": (types.transpose, [R2]),
    "R2 @ R2": (types.matmul, [R2, R2]),
    "R2 @ Vec": (types.matmul, [R2, Vec]),
    "SSR4 @ SR2": (types.matmul, [SSR4, SR2]),
    "SSR4 @ SSR4": (types.matmul, [SSR4, SSR4]),
    "det": (types.det, [R2]),
    "det of SR2": (types.det, [SR2]),
    "inv": (types.inv, [R2]),
    "inv of SR2": (types.inv, [SR2]),
    "inv of SSR4": (types.inv, [SSR4]),
    "inv of Quaternion": (types.inv, [Quaternion]),
    "inv of MRP": (types.inv, [MRP]),
    "sym": (types.sym, [R2]),
    "skew": (types.skew, [R2]),
    "r2_from_sr2": (types.r2_from_sr2, [SR2]),
    "r2_from_wr2": (types.r2_from_wr2, [WR2]),
    "euler_rodrigues": (types.euler_rodrigues, [MRP]),
    "compose": (types.compose, [MRP, MRP]),
    "exp_map": (types.exp_map, [WR2]),
    "rotate SR2": (types.rotate, [SR2, R2]),
    "rotate WR2": (types.rotate, [WR2, R2]),
    "rotate R2": (types.rotate, [R2, R2]),
    "rotate Vec": (types.rotate, [Vec, R2]),
    "rotate Scalar": (types.rotate, [Scalar, R2]),
    "rotate MRP": (types.rotate, [MRP, R2]),
    "rotate Quaternion": (types.rotate, [Quaternion, R2]),
    "rotate SSR4": (types.rotate, [SSR4, R2]),
    "eps": (lambda a: types.eps(a) + a, [Scalar]),
    "maximum": (types.maximum, [Vec, Vec]),
    "clamp": (lambda a: types.clamp(a, -0.3, 0.3), [Vec]),
    "heaviside": (types.heaviside, [Vec]),
    "macaulay": (types.macaulay, [Vec]),
    "pow": (lambda a, b: types.pow(types.abs(a), b), [Scalar, Scalar]),
    "equal": (lambda a, b: types.where(a == b, a, -b), [Scalar, Scalar]),
    "both": (lambda a, b: types.where((a > 0.0) & (b > 0.0), a, b), [Scalar, Scalar]),
    "either": (lambda a, b: types.where((a > 0.0) | ~(b > 0.0), a, b), [Scalar, Scalar]),
    "fill": (lambda a: SR2.fill(a[0], a[1], a[2], a[0], a[1], a[2]), [Vec]),
    "add_up": (lambda a, b: types.add_up([a, b, a]), [SR2, SR2]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_the_same_on_atoms_and_on_tensors(name: str) -> None:
    function, kinds = FUNCTIONS[name]
    source = torch.Generator().manual_seed(1)
    values = [
        kind(torch.randn(6, *kind.base, generator=source, dtype=torch.float64)) for kind in kinds
    ]
    for zero in (False, True):
        given = (
            [kind.zeros(6) for kind in kinds] if zero and name[:3] not in ("inv", "uni") else values
        )
        expected = function(*given).data
        torch.testing.assert_close(on_atoms(function, *given), expected, rtol=1e-13, atol=1e-13)
