"""Straight lines as they are printed: which products are fused with sums."""

from collections.abc import Sequence

from ingot.codegen.lines import Lines
from ingot.codegen.values import read_name
from ingot.program import Builder, Node


def write(builder: Builder, given: Sequence[Node], roots: Sequence[Node]) -> list[str]:
    lines = Lines(builder)
    lines.name({n.id: read_name(f"in{i}") for i, n in enumerate(given)})
    return [*map(str, lines(roots))]


def test_a_product_that_only_sums_read_is_fused_with_each() -> None:
    b = Builder()
    x, y, *others = given = [b.node("input", (), i, ()) for i in range(5)]
    product = b.emit("mul", x, y)
    rows = write(b, given, [b.emit("add", product, z) for z in others])
    assert len(rows) == 3 and all("fma(in0, in1, in" in row for row in rows)


def test_a_product_that_something_else_reads_is_a_line() -> None:
    b = Builder()
    x, y, z = given = [b.node("input", (), i, ()) for i in range(3)]
    product = b.emit("mul", x, y)
    total = b.emit("add", product, z)
    assert len(write(b, given, [total, b.emit("exp", product)])) == 3
    assert len(write(b, given, [total, product])) == 2
    assert len(write(b, given, [b.emit("add", product, b.emit("mul", product, z))])) == 2


def test_a_sum_of_two_products_fuses_one() -> None:
    b = Builder()
    x, y, z = given = [b.node("input", (), i, ()) for i in range(3)]
    rows = write(b, given, [b.emit("add", b.emit("mul", x, y), b.emit("mul", y, z))])
    assert len(rows) == 2 and "fma(" in rows[1]
