"""A text of a function tells all that it computes with, wherever that is written."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from torch import Tensor

from ingot.fields.jit import fingerprint
from ingot.fields.jit.fingerprint import Unstable, stable

SOURCE = Path(fingerprint.__file__).parents[4]

# Each law computes NUMBER * a through a helper that it reaches in its own way.
LAWS = {
    "a function": ("from helpers import scaled", "return scaled(a)"),
    "an attribute of a module": ("import helpers", "return helpers.scaled(a)"),
    "a module in a package": ("import inner.helpers", "return inner.helpers.scaled(a)"),
    "a module under another name": ("import inner.helpers as h", "return h.scaled(a)"),
    "an import inside": ("", "from helpers import scaled\n    return scaled(a)"),
    "a module imported inside": ("", "import inner.helpers\n    return inner.helpers.scaled(a)"),
    "a helper of a helper": ("import between", "return between.twice(a)"),
    "a number": ("import helpers", "return helpers.NUMBER * a"),
    "a number that was imported": ("from helpers import NUMBER", "return NUMBER * a"),
    "a table": ("from helpers import TABLE", "return TABLE['x'][0] * a"),
    "a function in a table": ("from helpers import CHOICES", "return CHOICES['x'](a)"),
    "a method": ("from helpers import Scale", "return Scale().of(a)"),
    "an inherited method": ("from helpers import Finer", "return Finer().of(a)"),
    "a static method": ("from helpers import Scale", "return Scale.plain(a)"),
    "a property": ("from helpers import Scale", "return Scale().number * a"),
    "an object": ("from helpers import SCALE", "return SCALE.of(a)"),
    "an object's number": ("from helpers import HELD", "return HELD.by * a"),
    "an object with slots": ("from helpers import SLOTTED", "return SLOTTED.by * a"),
    "an object that is called": ("from helpers import CALLED", "return CALLED(a)"),
    "a part of a function": ("from helpers import PART", "return PART(a)"),
    "a decorated function": ("from helpers import decorated", "return decorated(a)"),
    "a function without gradients": ("from helpers import quiet", "return quiet(a)"),
    "a function that remembers": ("from helpers import number", "return number() * a"),
    "a default": ("from helpers import NUMBER", "return a * by", "a, by=NUMBER"),
    "a function inside": ("import helpers", "return (lambda x: helpers.scaled(x))(a)"),
    "a comprehension": ("from helpers import scaled", "return [scaled(x) for x in [a]][0]"),
    "a tensor": ("from helpers import TENSOR", "return TENSOR * a"),
    "an array": ("from helpers import ARRAY", "return float(ARRAY[0]) * a"),
    "a module called like one of Python's": ("import wave", "return wave.scaled(a)"),
}
UNKEPT = {"a function without gradients"}
"""What has no text, so that it is captured by every process."""

HELPERS = """
import functools
from dataclasses import dataclass
import numpy
import torch
NUMBER = {number}
TABLE = {{"x": ({number}, 1)}}
TENSOR = torch.tensor([{number}])
ARRAY = numpy.array([{number}])
def scaled(a):
    return {number} * a
CHOICES = {{"x": scaled}}
class Scale:
    def of(self, a):
        return {number} * a
    @staticmethod
    def plain(a):
        return {number} * a
    @property
    def number(self):
        return {number}
class Finer(Scale):
    pass
SCALE = Scale()
@dataclass
class Held:
    by: float
HELD = Held({number})
class Slotted:
    __slots__ = ("by",)
SLOTTED = Slotted()
SLOTTED.by = {number}
class Called:
    def __init__(self, by):
        self.by = by
    def __call__(self, a):
        return self.by * a
CALLED = Called({number})
def times(by, a):
    return by * a
PART = functools.partial(times, {number})
def passed(function):
    @functools.wraps(function)
    def wrapper(*given):
        return function(*given)
    return wrapper
decorated = passed(scaled)
quiet = torch.no_grad()(scaled)
@functools.cache
def number():
    return {number}
"""
TELL = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
from ingot.fields.jit.fingerprint import Unstable, stable
def text(law):
    try:
        return stable(law)
    except Unstable:
        return None
names = json.loads(sys.argv[2])
laws = {name: importlib.import_module(f"law{i}").law for i, name in enumerate(names)}
print(json.dumps({name: [float(law(1.0)), text(law)] for name, law in laws.items()}))
"""


def told(folder: Path, number: float, seed: int) -> dict[str, tuple[float, str]]:
    """What every law gives for 1, and its text, in a process of its own."""
    text = HELPERS.format(number=number)
    for name in ("helpers.py", "inner/helpers.py", "wave.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "between.py").write_text("import helpers\ndef twice(a): return helpers.scaled(a)\n")
    for i, (head, body, *takes) in enumerate(LAWS.values()):
        (folder / f"law{i}.py").write_text(f"{head}\ndef law({(takes or ['a'])[0]}):\n    {body}\n")
    done = subprocess.run(
        [sys.executable, "-B", "-c", TELL, str(folder), json.dumps(list(LAWS))],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": str(seed)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_changed_helper_changes_the_text_however_it_is_reached(tmp_path: Path) -> None:
    first, same, other = (told(tmp_path, n, seed) for seed, n in enumerate((2.5, 2.5, 3.5)))
    for name in LAWS:
        assert (first[name][0], other[name][0]) == (2.5, 3.5), name
        assert first[name][1] == same[name][1], name
        assert first[name][1] != other[name][1] or name in UNKEPT, name


def test_lines_that_move_change_nothing() -> None:
    texts = []
    for head in ("", "\n\n# a comment\n"):
        space: dict[str, object] = {"__name__": "somewhere"}
        exec(f"{head}def law(a):\n    return 2 * a", space)
        texts.append(stable(space["law"]))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "body", ["open('x').read()", "getattr(a, 'x')", "eval('a')", "torch.load('x')", "os.environ"]
)
def test_what_may_reach_anything_is_not_kept(body: str) -> None:
    import torch

    space: dict[str, object] = {"__name__": "somewhere", "torch": torch, "os": os}
    exec(f"def law(a):\n    return {body}", space)
    with pytest.raises(Unstable, match="by which it may reach anything"):
        stable(space["law"])


def scaled(by: float) -> object:
    def function(a: Tensor) -> Tensor:
        return by * a

    return function


def test_what_a_function_encloses_is_part_of_its_name() -> None:
    assert stable(scaled(2.0)) == stable(scaled(2.0))
    assert stable(scaled(2.0)) != stable(scaled(3.0))


def test_what_has_no_lasting_name_is_not_kept() -> None:
    with pytest.raises(Unstable, match="lock has no lasting name"):
        stable({"held": threading.Lock()})
