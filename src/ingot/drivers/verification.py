"""Verification: chosen variables of a transient against `[Tensors]` of expected values."""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from ingot.drivers.regression import read_driver, read_tolerance
from ingot.drivers.result import Flat
from ingot.drivers.transient import TransientDriver
from ingot.drivers.values import Given, gather_problems, list_options, read_list
from ingot.drivers.verdict import Mismatch, Tolerance, Verdict, compare, judge
from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.execute import Backend, failures
from ingot.hit import Block, unknown_blocks, unknown_fields
from ingot.model import Factory

__all__ = ["Verification"]

KINDS = ("Scalar", "SR2", "Vec", "WR2")


@dataclass(frozen=True, slots=True)
class Verification:
    """Runs a transient and compares variables at all steps or at some.

    driver: the TransientDriver; <kind>_names: variables such as `output.stress`; <kind>_values:
    their expected values, a row a step; time_steps: the steps to compare; rtol, atol: how far a
    value may be off.
    """

    block: Block
    driver: TransientDriver
    expected: dict[str, Given]
    steps: tuple[int, ...]
    tolerance: Tolerance

    @staticmethod
    def build(block: Block, factory: Factory) -> "Verification":
        """The comparison that a block describes."""
        known = ("type", "driver", "rtol", "atol", "time_steps", *list_options(("",), KINDS))
        problems = [*unknown_fields(block, known), *unknown_blocks(block)]
        expected = read_list(block, factory, "", problems, KINDS)
        driver, tolerance = None, Tolerance()
        with gather_problems(problems):
            tolerance = read_tolerance(block, "rtol", "atol")
        with gather_problems(problems):
            driver = read_driver(block, factory)
        if driver is None:
            raise IngotError(problems)
        steps = tuple(range(driver.steps))
        with gather_problems(problems):
            steps = read_steps(block, driver.steps)
        problems += find_misfits(block, driver, expected, steps)
        raise_if(problems)
        return Verification(block, driver, expected, steps, tolerance)

    def run(self, backend: Backend | None = None) -> Verdict:
        """Every row of the expected values against the result of its step."""
        result = self.driver.compute(backend)
        failed = failures(result.statuses, result.times)
        if failed:
            return Verdict(len(self.expected), failed)
        mismatches: list[Mismatch] = []
        for name, given in self.expected.items():
            data: Tensor = given.value.data
            rows = [data] if len(self.steps) == 1 else data.unbind()
            for step, row in zip(self.steps, rows, strict=True):
                mismatch = self.row(result.flat, name, step, row)
                mismatches += [mismatch] if mismatch is not None else []
        checks = len(self.expected) * len(self.steps)
        return judge(checks, mismatches, "what is expected", self.block.span)

    def row(self, flat: Flat, name: str, step: int, row: Tensor) -> Mismatch | None:
        """One comparison; a value that step 0 does not have counts as zero."""
        side, _, variable = name.partition(".")
        key = f"{side}.{step}.{variable}"
        found = flat[key] if key in flat else row.new_zeros(())
        return compare(key, found.squeeze(), row.squeeze(), (), self.tolerance)


def read_steps(block: Block, count: int) -> tuple[int, ...]:
    """The steps to compare, ascending; all where the block is silent."""
    field = block.field("time_steps")
    if field is None or not field.words():
        return tuple(range(count))
    words = field.words()
    # Python reads no whole number of thousands of digits
    wrong = [w for w in words if not w.isdecimal() or len(w) > 18 or int(w) >= count]
    if wrong:
        raise field.wrong(f"steps from 0 to {count - 1}", wrong[0])
    steps = tuple(int(word) for word in words)
    if list(steps) != sorted(set(steps)):
        raise field.wrong("steps in ascending order", fix="sort them, each once")
    return steps


def find_misfits(
    block: Block, driver: TransientDriver, expected: dict[str, Given], steps: tuple[int, ...]
) -> Iterator[Problem]:
    """Names that the result does not hold, and values with another number of rows."""
    if not expected:
        fix = "add 'SR2_names = output.stress' and 'SR2_values = ...'"
        yield Problem("nothing-checked", "no variable is listed", block.span, fix)
    sides = {"input": driver.model.inputs, "output": driver.model.outputs}
    known = [f"{side}.{name}" for side, names in sides.items() for name in names]
    for name, given in expected.items():
        if name not in known:
            message = f"the result of [{driver.block.name}] has no '{name}'"
            fix = did_you_mean(name, known) or f"choose one of: {', '.join(known)}"
            yield Problem("unknown-variable", message, given.name_span, fix)
        if len(steps) > 1 and given.batch[:1] != (len(steps),):
            rows = given.batch[0] if given.batch else "no"
            message = f"'{name}' has {rows} rows for {len(steps)} steps"
            yield Problem("shapes-differ", message, given.value_span, "give a row for each step")
