"""What the progress display shows of compiled sequences."""

from ingot.fields.jit import Statistics


def test_counts_are_told_in_a_line() -> None:
    told = str(Statistics(sequences=2, hits=1, operations=42, passes=10))
    assert told == "JIT: 2 sequences, 1 cache hit, 42 operations in 10 passes"


def test_fallbacks_are_told_where_there_are_some() -> None:
    assert ", 2 fallbacks, " in str(Statistics(sequences=1, fallbacks=2))
