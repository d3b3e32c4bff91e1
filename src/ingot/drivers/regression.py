"""TransientRegression: the result of a transient against values stored in a file."""

import os
import pickle
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ingot.drivers.transient import TransientDriver, transient_driver
from ingot.drivers.values import gather_problems
from ingot.drivers.verdict import Mismatch, Tolerance, Verdict, compare, judge
from ingot.errors import IngotError, Problem, Span, raise_if
from ingot.execute import Backend, failures
from ingot.hit import Block, Field, unknown_blocks, unknown_fields
from ingot.model import Factory
from ingot.options import NotNegative

__all__ = ["TransientRegression", "read_driver", "read_tolerance"]


@dataclass(frozen=True, slots=True)
class TransientRegression:
    """Runs a transient and compares every stored value.

    driver: the TransientDriver; reference: file of stored values, relative to the input file;
    rtol, atol: how far a value may be off.
    """

    driver: TransientDriver
    together: TransientDriver
    """The same, all points of a batch moving until the last has converged."""
    reference: Path
    tolerance: Tolerance
    span: Span
    untrusted: bool = False

    @staticmethod
    def build(block: Block, factory: Factory) -> "TransientRegression":
        """The comparison that a block describes."""
        known = ("type", "driver", "reference", "rtol", "atol")
        problems = [*unknown_fields(block, known), *unknown_blocks(block)]
        driver, together, file, tolerance = None, None, None, Tolerance()
        with gather_problems(problems):
            tolerance = read_tolerance(block, "rtol", "atol")
        with gather_problems(problems):
            file = block.require("reference")
            path = find_file(file, factory)
        with gather_problems(problems):
            driver = read_driver(block, factory)
            together = read_driver(block, factory.renew(stop="batch"))
        raise_if(problems)
        assert driver is not None
        assert together is not None
        assert file is not None
        span = file.value_span
        return TransientRegression(driver, together, path, tolerance, span, factory.untrusted)

    def run(self, backend: Backend | None = None) -> Verdict:
        """Every value of the reference against the result's value of that key.

        A point that stops by itself is converged as its solver says, but not as far as one that
        goes on with others, as it does where the peer made the reference: either may agree.
        """
        expected = read_stored(self.reference, self.span, untrusted=self.untrusted)
        verdict = self._judge(self.driver, expected, backend)
        if verdict.passed or not self.driver.rules:
            return verdict
        together = self._judge(self.together, expected, backend)
        return together if together.passed else verdict

    def _judge(
        self, driver: TransientDriver, expected: Mapping[str, Tensor], backend: Backend | None
    ) -> Verdict:
        result = driver.compute(backend)
        failed = failures(result.statuses, result.times)
        if failed:
            return Verdict(len(expected), failed)
        found = result.flat
        kinds = {**driver.model.inputs, **driver.model.outputs}
        mismatches: list[Mismatch] = []
        for key, value in expected.items():
            if key not in found:
                mismatches.append(Mismatch(key, "the result has no such value"))
                continue
            base = kinds[key.split(".", 2)[2]].base
            mismatch = find_other_shape(key, found[key], value) or compare(
                key, found[key], value, base, self.tolerance
            )
            mismatches += [mismatch] if mismatch is not None else []
        return judge(len(expected), mismatches, f"'{self.reference.name}'", self.span)


def find_other_shape(key: str, found: Tensor, expected: Tensor) -> Mismatch | None:
    """A stored value has the result's shape, or lacks leading axes of it.

    Where the peer accepts a step at once, what it stores has no batch axis.
    """
    ours, theirs = tuple(found.shape), tuple(expected.shape)
    if len(theirs) <= len(ours) and ours[len(ours) - len(theirs) :] == theirs:
        return None
    return Mismatch(key, f"has shape {ours}, expected {theirs}")


def read_driver(block: Block, factory: Factory) -> TransientDriver:
    """The TransientDriver that a block judges."""
    asked = block.require("driver")
    return transient_driver(factory, asked.string(), asked.value_span)


def read_tolerance(block: Block, rtol: str, atol: str) -> Tolerance:
    """The tolerance that two options of a block give."""
    options = {"rtol": block.field(rtol), "atol": block.field(atol)}
    given = {name: f.option(NotNegative) for name, f in options.items() if f is not None}
    return Tolerance(**given)


def find_file(file: Field, factory: Factory) -> Path:
    """The file that an option names, relative to the input file."""
    folder = factory.tree.file.parent if factory.tree.file is not None else Path()
    path = folder / file.string()
    if not os.path.isfile(path):  # a path that cannot be is not one
        fix = "give its path from the folder of the input file"
        problem = Problem("file-not-found", f"there is no file '{path}'", file.value_span, fix)
        raise IngotError([problem])
    return path


def read_stored(path: Path, span: Span, *, untrusted: bool = False) -> Mapping[str, Tensor]:
    """The values of a file written by `torch.save`, or held by an older TorchScript module.

    A TorchScript module holds code, and is not opened where the file is `untrusted`.
    """
    try:
        found = load_stored(path, scripts=not untrusted)
    except (RuntimeError, pickle.UnpicklingError, EOFError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        message = f"'{path.name}' cannot be read: {reason}"
        fix = "write it with save_as of a TransientDriver"
        raise IngotError([Problem("unreadable-reference", message, span, fix)]) from error
    if not isinstance(found, dict) or not all(isinstance(v, Tensor) for v in found.values()):
        message = f"'{path.name}' does not hold a dictionary of tensors"
        raise IngotError([Problem("unreadable-reference", message, span)])
    return found


def load_stored(path: Path, *, scripts: bool) -> Any:
    with warnings.catch_warnings():
        # torch warns of TorchScript, which nobody can help whose reference is old.
        warnings.simplefilter("ignore")
        try:
            return torch.load(path, weights_only=True)
        except (RuntimeError, pickle.UnpicklingError):
            if not scripts:
                raise
            return dict(torch.jit.load(path).state_dict())
