"""A driver -> the input file that describes it, of all its points or of one alone."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from torch import Tensor

from ingot.drivers.values import DRIVEN, Given
from ingot.hit import Block, Field, Tree
from ingot.model.write import NOWHERE, Writer, section, spell_block, written
from ingot.types import Value

if TYPE_CHECKING:
    from ingot.drivers.transient import TransientDriver

__all__ = ["describe_driver", "describe_point"]

Selection = Callable[[Value, bool], Value]
"""What is written of a value, which may have steps."""


def describe_driver(driver: "TransientDriver") -> Tree:
    """The file of a driver, its model and all values."""
    path = "" if driver.save_as is None else str(driver.save_as)
    field = written("save_as", path)
    if not re.fullmatch(r"[\w./-]*", path):
        field = replace(field, verbatim=True)  # no list of words, whose blanks may change
    return _describe(driver, Writer(), lambda value, _: value, [field] if path else [])


def describe_point(driver: "TransientDriver", steps: int, point: int) -> Tree:
    """A file that takes one point of a driver through its first steps."""
    select = partial(_select_point, driver.batch, point)
    writer = Writer(lambda value: select(value, None))
    return _describe(driver, writer, lambda x, stepped: select(x, steps if stepped else None), ())


def _describe(
    driver: "TransientDriver", writer: Writer, select: Selection, more: Iterable[Field]
) -> Tree:
    name = writer.root(driver.model, driver.factory.settings.extents(driver.model))
    if driver.strict:
        writer.declare("strict", "true")
    clock = driver.clock
    fields = [written("type", "TransientDriver"), written("model", name)]
    fields.append(written("prescribed_time", writer.enter(select(clock.value, True), "time")))
    if clock.name != "t":
        fields.append(written("time", clock.name))
    forces = {n: g for n, g in driver.forces.items() if n != clock.name}
    for prefix, given in (("prescribed", forces), ("ic", driver.starts)):
        fields += _lists(writer, prefix, given, select)
    title = spell_block(driver.block.name)
    block = Block(title, f"Drivers/{title}", (*fields, *more), (), NOWHERE)
    return writer.tree(section("Drivers", [block]))


def _lists(
    writer: Writer, prefix: str, given: Mapping[str, Given], select: Selection
) -> Iterable[Field]:
    """The names and values of one list, kind by kind."""
    for kind in DRIVEN:
        some = [each for each in given.values() if type(each.value).__name__ == kind]
        if some:
            values = [
                writer.enter(select(each.value, prefix == "prescribed"), f"{prefix}_{each.name}")
                for each in some
            ]
            yield written(f"{prefix}_{kind}_names", " ".join(each.name for each in some))
            yield written(f"{prefix}_{kind}_values", " ".join(values))


def _select_point(batch: tuple[int, ...], point: int, value: Value, steps: int | None) -> Value:
    """One point of a value, of its first steps where it has any."""
    at = 0 if steps is None else 1
    data: Tensor = value.data[:steps] if at else value.data
    own = value.dynamic_batch.shape[at:]
    rows, inner = data.shape[:at], data.shape[at + len(own) :]
    ones = [1] * (len(batch) - len(own))
    full = data.reshape((*rows, *ones, *own, *inner)).expand((*rows, *batch, *inner))
    return type(value)(full.reshape(*rows, -1, *inner).select(at, point), sub_batch_ndim=value.sub)
