"""einsum on values against torch's on their numbers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot import types
from ingot.errors import IngotError
from ingot.types import R2, SR2, SSR4, WR2, Quaternion, Scalar, Value, Vec
from tests.types.atoms import on_atoms, traced

CASES: dict[str, list[type[Value]]] = {
    "ij,jk->ik": [R2, R2], "ij,ij->": [R2, R2], "i,ij,j->": [Vec, R2, Vec], "ii->": [R2],
    "ij->ji": [R2], "ii->i": [R2], "i,j->ij": [Vec, WR2], "ij,j->i": [SSR4, SR2], "ij,jk": [R2, R2],
    "ba": [R2], "i,i": [Quaternion, Quaternion], ",i->i": [Scalar, SR2], "i,j->ji": [SR2, SR2],
    "ki,kl,lj->ij": [R2, R2, R2], "ij,kj->": [R2, R2], "i,i->i": [Vec, Vec],
    "iI, Ij -> ij": [R2, R2],
    "ij,jk,kl,lm,m->i": [SSR4, SSR4, SSR4, SSR4, SR2], "i->": [SR2], ",->": [Scalar, Scalar],
}  # fmt: skip


def drawn(kinds: list[type[Value]], seed: int = 3) -> list[Value]:
    source = torch.Generator().manual_seed(seed)
    return [kind(torch.randn(kind.base, generator=source, dtype=torch.float64)) for kind in kinds]


def agrees(subscripts: str, values: list[Value]) -> None:
    expected = torch.einsum(subscripts, *(v.data for v in values))
    found = types.einsum(subscripts, *values)
    near = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(found.data, expected, **near)
    result = on_atoms(lambda *given: types.einsum(subscripts, *given), *values)
    torch.testing.assert_close(result, expected, **near)


@pytest.mark.parametrize("subscripts", CASES)
def test_sum_is_that_of_torch(subscripts: str) -> None:
    agrees(subscripts, drawn(CASES[subscripts]))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_sum_that_a_kind_can_hold_is_that_of_torch(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from([Scalar, Vec, R2]), min_size=1, max_size=4))
    words = ["".join(data.draw(st.sampled_from("ijk")) for _ in kind.base) for kind in kinds]
    letters = sorted(set("".join(words)))
    result = data.draw(st.permutations(letters).map("".join))[: data.draw(st.integers(0, 2))]
    agrees(f"{','.join(words)}->{result}", drawn(list(kinds), data.draw(st.integers(0, 99))))


def test_sums_are_taken_early() -> None:
    quadratic = traced(lambda a, b, c: types.einsum("i,ij,j->", a, b, c), *drawn([Vec, R2, Vec]))
    assert quadratic.count() == 20
    chain = traced(lambda a, b, c: types.einsum("ij,jk,kl->il", a, b, c), *drawn([R2] * 3))
    assert chain.count() == 90


@pytest.mark.parametrize(
    ("subscripts", "kinds", "message"),
    [
        ("ij,jk->ik", [SR2, R2], r"does not fit SR2, whose shape is \(6,\); r2_from_sr2"),
        ("i,i->", [Vec, SR2], "'i' counts 3 entries and 6"),
        ("...i->...i", [Vec], "one point"),
        ("i->ii", [Vec], "repeats a letter"),
        ("i->j", [Vec], "that no value has"),
        ("i,j->ij", [Vec], "names 2 values, and 1"),
        ("i1->", [R2], "write letters"),
    ],
)
def test_what_does_not_fit_is_told(subscripts: str, kinds: list[type[Value]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        types.einsum(subscripts, *drawn(kinds))


def test_a_shape_of_no_kind_is_refused_with_the_way_out() -> None:
    with pytest.raises(IngotError) as refused:
        traced(lambda a, b: types.einsum("ij,kl->ijkl", a, b), *drawn([R2, R2]))
    (problem,) = refused.value.problems
    assert "3 x 3 x 3 x 3 numbers by 'ij,kl->ijkl'" in problem.message
    assert "sum over more letters" in (problem.fix or "")
