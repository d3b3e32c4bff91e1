"""Mutated input files are built or refused; `tests/mutations.py` is the whole campaign."""

import pytest

from tests.mutations import CASES, campaign


def found(count: int, first: int, jobs: int) -> list[tuple[int, str, str]]:
    """What should not have happened to so many files."""
    if not CASES.is_dir():
        pytest.skip("the published cases do not lie beside the checkout (../shared/cases)")
    findings: list[tuple[int, str, str]] = []
    total = campaign(range(first, first + count), jobs, lambda *each: findings.append(each))
    assert sum(total.values()) == count
    assert total["built"] > 0.03 * count
    assert total["refused"] > 0.1 * count
    return [each for each in findings if each[1] in ("traceback", "hang", "crash")]


def test_mutated_files_are_built_or_refused() -> None:
    assert found(500, 0, 1) == []


@pytest.mark.exhaustive
def test_many_mutated_files_are_built_or_refused() -> None:
    assert found(20_000, 10_000, 2) == []
