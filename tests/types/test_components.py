"""Components by name are the entries of the tensor that a kind stores."""

import itertools

import numpy as np
import pytest
import torch

from ingot.types import KINDS, R2, SR2, SSR4, WR2, Value, r2_from_sr2, r2_from_wr2
from ingot.types.components import (
    list_component_names,
    list_component_suffixes,
    list_scales,
)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_every_component_has_a_name_of_its_own(kind: type[Value]) -> None:
    names = list_component_names(kind)
    assert len(set(names)) == len(names) == max(1, int(np.prod(kind.base)))
    assert list_scales(kind).shape == kind.base
    assert [s.removeprefix("_") for s in list_component_suffixes(kind)] == list(names)


@pytest.mark.parametrize(("kind", "full"), [(SR2, r2_from_sr2), (WR2, r2_from_wr2), (R2, R2)])
def test_a_component_is_the_entry_of_its_letters(kind: type[Value], full) -> None:
    stored = torch.randn(kind.base, dtype=torch.float64)
    matrix = full(kind(stored)).data
    own = (stored.numpy() / list_scales(kind)).reshape(-1)
    for name, number in zip(list_component_names(kind), own, strict=True):
        i, j = ("xyz".index(letter) for letter in name)
        assert number == pytest.approx(float(matrix[i, j]), rel=1e-15)


def test_a_component_of_fourth_order_maps_strain_to_stress() -> None:
    numbers = torch.Generator().manual_seed(3)
    stored = torch.randn(6, 6, generator=numbers, dtype=torch.float64)
    strain = torch.randn(6, generator=numbers, dtype=torch.float64)
    stress = r2_from_sr2(SR2(stored @ strain)).data
    matrix = r2_from_sr2(SR2(strain)).data
    names = list_component_names(SSR4)
    own = dict(zip(names, (stored.numpy() / list_scales(SSR4)).reshape(-1), strict=True))

    def entry(*letters: str) -> float:
        pairs = ("".join(sorted(letters[:2])), "".join(sorted(letters[2:])))
        return float(own["".join(pairs)])

    for i, j in itertools.product("xyz", repeat=2):
        total = sum(
            entry(i, j, k, m) * float(matrix["xyz".index(k), "xyz".index(m)])
            for k, m in itertools.product("xyz", repeat=2)
        )
        assert total == pytest.approx(float(stress["xyz".index(i), "xyz".index(j)]), rel=1e-13)
