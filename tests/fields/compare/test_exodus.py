"""Exodus: a grid with its variables, written and read, and as others number it."""

from pathlib import Path

import numpy as np
import pytest

from ingot.errors import IngotError
from ingot.fields.compare import Exodus, grid, read_exodus, write_exodus
from ingot.fields.compare.netcdf import Netcdf, write_netcdf


@pytest.mark.parametrize("counts", [(4,), (3, 2), (2, 3, 2)])
def test_every_cell_is_an_element_around_its_centre(counts: tuple[int, ...]) -> None:
    dim = len(counts)
    nodes, elements = grid(counts, (0.0,) * dim, tuple(float(n) for n in counts))
    assert len(nodes) == np.prod([n + 1 for n in counts])
    assert elements.shape == (np.prod(counts), 2**dim)
    centres = nodes[elements].mean(axis=1)
    expected = np.stack(np.meshgrid(*(np.arange(n) + 0.5 for n in counts), indexing="ij"), -1)
    by_place = expected.transpose(*range(dim - 1, -1, -1), dim).reshape(-1, dim)
    assert np.allclose(centres, by_place)
    assert np.allclose(np.abs(nodes[elements] - centres[:, None]), 0.5)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    nodes, elements = grid((3, 2), (0.0, 0.0), (3.0, 1.0))
    rng = np.random.default_rng(0)
    written = Exodus(
        nodes,
        elements,
        np.array([0.0, 0.1]),
        {"c": rng.random((2, 12))},
        {"mu": rng.random((2, 6)), "b": rng.random((2, 6))},
        {"total": rng.random(2)},
    )
    write_exodus(tmp_path / "x.e", written)
    found = read_exodus(tmp_path / "x.e")
    assert np.array_equal(found.nodes, nodes) and np.array_equal(found.elements, elements)
    assert np.array_equal(found.times, written.times)
    for kind in ("nodal", "elemental", "scalar"):
        ours, theirs = getattr(found, kind), getattr(written, kind)
        assert list(ours) == list(theirs)
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_published_file_is_read(marlin: Path) -> None:
    gold = read_exodus(marlin / "cahnhilliard" / "gold" / "cahnhilliard_out.e")
    assert gold.nodes.shape == (441, 2) and gold.elements.shape == (400, 4)
    assert gold.times == pytest.approx(np.arange(11) * 1e-3)
    assert list(gold.nodal) == ["c"] and list(gold.elemental) == ["mu"]
    assert list(gold.scalar) == ["delta_int_c", "min_c"]
    # Cells of a random start lie between the numbers of the input.
    assert 0.44 <= gold.nodal["c"][0].min() < gold.nodal["c"][0].max() <= 0.56
    # The grid is periodic: nodes of the right and upper side repeat those of the left and lower.
    left, right = (gold.nodes[:, 0] == side for side in (0.0, 3.0))
    first, second = (np.argsort(gold.nodes[side, 1]) for side in (left, right))
    c = gold.nodal["c"][-1]
    assert np.array_equal(c[left][first], c[right][second])


def test_netcdf_that_is_no_exodus_is_refused(tmp_path: Path) -> None:
    write_netcdf(tmp_path / "x.nc", Netcdf({"a": 1}, {}))
    with pytest.raises(IngotError, match="is no Exodus file: it has no 'num_dim'"):
        read_exodus(tmp_path / "x.nc")
