"""Exodus files are compared by where nodes and elements are, however they are numbered."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingot.fields.compare import (
    Exodus,
    Limits,
    compare_exodus,
    grid,
    read_exodus,
    write_exodus,
)


def sample() -> Exodus:
    nodes, elements = grid((3, 2), (0.0, 0.0), (3.0, 1.0))
    rng = np.random.default_rng(0)
    times = np.array([0.0, 0.1])
    fields = {"c": rng.random((2, 12))}, {"mu": rng.random((2, 6))}, {"total": rng.random(2)}
    return Exodus(nodes, elements, times, *fields)


def findings(folder: Path, found: Exodus) -> list[str]:
    write_exodus(folder / "gold.e", sample())
    write_exodus(folder / "out.e", found)
    compared = compare_exodus(folder / "out.e", folder / "gold.e", Limits())
    return [str(finding) for finding in compared.findings]


def renumbered(exodus: Exodus, seed: int) -> Exodus:
    """The same fields with nodes and elements in another order."""
    rng = np.random.default_rng(seed)
    nodes, elements = rng.permutation(len(exodus.nodes)), rng.permutation(len(exodus.elements))
    return Exodus(
        exodus.nodes[nodes],
        np.argsort(nodes)[exodus.elements[elements]],
        exodus.times,
        {name: values[:, nodes] for name, values in exodus.nodal.items()},
        {name: values[:, elements] for name, values in exodus.elemental.items()},
        exodus.scalar,
    )


def test_same_fields_pass_in_any_order(tmp_path: Path) -> None:
    assert not findings(tmp_path, sample())
    assert not findings(tmp_path, renumbered(sample(), 1))


def changed(part: str, name: str, at: tuple[int, ...]) -> Exodus:
    exodus = sample()
    getattr(exodus, part)[name][at] += 0.01
    return exodus


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (lambda: changed("nodal", "c", (1, 5)), "'c': at time 0.1, node at (1, 0.5) is"),
        (lambda: changed("elemental", "mu", (0, 4)), "'mu': at time 0, element at (1.5, 0.75) is"),
        (lambda: changed("scalar", "total", (1,)), "global variable 'total': at time 0.1 is"),
        (lambda: replace(sample(), nodal={}), "node variable 'c': is missing"),
        (
            lambda: replace(sample(), scalar={**sample().scalar, "more": np.zeros(2)}),
            "global variable 'more': is not in the reference",
        ),
        (lambda: replace(sample(), times=np.array([0.0, 0.2])), "the times: step 1 is 0.2 instead"),
        (lambda: replace(sample(), nodes=sample().nodes * 1.1), "the nodes: are elsewhere"),
    ],
)
def test_spoiled_file_fails(tmp_path: Path, found: Callable[[], Exodus], says: str) -> None:
    assert any(says in finding for finding in findings(tmp_path, found()))


def test_fewer_steps_or_cells_fail(tmp_path: Path) -> None:
    few = sample()
    short = Exodus(few.nodes, few.elements, few.times[:1])
    assert "the times: has shape (1,) instead of (2,)" in findings(tmp_path, short)
    nodes, elements = grid((2, 2), (0.0, 0.0), (3.0, 1.0))
    said = findings(tmp_path, Exodus(nodes, elements, few.times))
    assert "the nodes: are elsewhere, or 9 instead of 12" in said


def test_published_files_equal_themselves_and_spoiled_ones_fail(
    marlin: Path, tmp_path: Path
) -> None:
    golds = sorted(marlin.rglob("gold/*.e"))
    assert golds
    for gold in golds:
        exodus = renumbered(read_exodus(gold), 2)
        write_exodus(tmp_path / "x.e", exodus)
        assert not compare_exodus(tmp_path / "x.e", gold, Limits()).findings
        exodus.nodal["c"][-1, 7] *= 1.0001
        write_exodus(tmp_path / "x.e", exodus)
        (finding,) = compare_exodus(tmp_path / "x.e", gold, Limits()).findings
        assert "node variable 'c': at time" in str(finding) and "1 of " in str(finding)
