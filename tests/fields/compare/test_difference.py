"""Numbers are equal within limits, and what is not is told with its place and both values."""

import math

import numpy as np
import pytest

from ingot.fields.compare.difference import Limits, differing, joined, words_differ

NEAR = Limits()
EXACT = Limits(0.0, 0.0, 1e-13)


@pytest.mark.parametrize(
    ("found", "expected", "limits", "equal"),
    [
        (1.0, 1.0 + 5.4e-6, NEAR, True),
        (1.0, 1.0 + 5.6e-6, NEAR, False),
        (9e-11, -9e-11, NEAR, True),
        (0.0, 1.1e-10, NEAR, False),
        (math.nan, 1.0, NEAR, False),
        (1.0, math.nan, NEAR, False),
        (math.nan, math.nan, NEAR, True),
        (math.inf, math.inf, NEAR, True),
        (math.inf, 1.0, NEAR, False),
        (math.inf, -math.inf, NEAR, False),
        (1.0, 1.0 + 9e-14, EXACT, True),
        (1.0, 1.0 + 2e-13, EXACT, False),
        (0.0, 2e-13, EXACT, False),
        (math.nan, 1.0, EXACT, False),
        (5.0, 5.0, Limits(0.0, 0.0, 0.0), True),
        (5.0, math.nextafter(5.0, 6), Limits(0.0, 0.0, 0.0), False),
    ],
)
def test_limits(found: float, expected: float, limits: Limits, *, equal: bool) -> None:
    finding = differing("x", np.array([found]), np.array([expected]), limits, str)
    assert (finding is None) == equal


def test_the_worst_number_is_told_with_its_place_both_values_and_the_limit() -> None:
    expected = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = expected * np.array([[1.0, 1.001], [1.5, 1.0]])
    finding = differing("field", found, expected, NEAR, lambda at: f"at {list(at)}")
    assert str(finding) == (
        "field: at [1, 0] is 4.5 instead of 3, off by 1.5 (0.33 relative)"
        " (allowed: 5.5e-06 relative, 1e-10 counts as zero); 2 of 4 differ"
    )


def test_shapes_must_agree() -> None:
    finding = differing("field", np.zeros((2, 3)), np.zeros((3, 2)), NEAR, str)
    assert str(finding) == "field: has shape (2, 3) instead of (3, 2)"


def test_words_are_compared_as_numbers_where_they_are_numbers() -> None:
    assert words_differ("x", "1.0 a 2", "1 a 2.000001", NEAR) is None
    assert "has 'a' instead of 'b'" in str(words_differ("x", "1 a", "1 b", NEAR))
    assert "is 2 instead of 3" in str(words_differ("x", "1 2", "1 3", NEAR))
    assert "is '1' instead of '1 2'" in str(words_differ("x", "1", "1 2", NEAR))


def test_the_worst_part_comes_first() -> None:
    ones = np.ones(1)
    parts = [differing(str(f), ones * f, ones, NEAR, str) for f in (1.1, 2.0, 1.0)]
    assert [finding.part for finding in joined(3, parts).findings] == ["2.0", "1.1"]
