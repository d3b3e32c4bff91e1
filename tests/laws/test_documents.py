"""Every law says what it is, and every parameter and option has its sentence."""

import inspect
import re
from statistics import median

import pytest

from ingot.catalog import CATALOG, Declared, key, load

every_law = pytest.mark.parametrize("declared", load().values(), ids=lambda d: d.name)
LINE = re.compile(r"^\s*(\w+): (\S.*)$", re.MULTILINE)


def described(declared: Declared) -> dict[str, str]:
    """The lines `name: sentence` of a docstring."""
    return dict(LINE.findall(inspect.getdoc(declared.function) or ""))


@every_law
def test_a_law_says_what_it_is_in_one_sentence(declared: Declared) -> None:
    text = inspect.getdoc(declared.function) or ""
    first = text.split("\n\n")[0]
    assert first[:1].isupper() or first.startswith("$")
    assert first.endswith(".")


@every_law
def test_every_parameter_and_option_has_its_sentence(declared: Declared) -> None:
    wanted = [key(slot.argument) for slot in (*declared.parameters, *declared.options)]
    assert list(described(declared)) == wanted


@every_law
def test_a_law_has_the_name_of_its_type_or_of_its_family(declared: Declared) -> None:
    family = declared.function.__name__
    assert declared.name.endswith(family) or declared.name.startswith(family)


@every_law
def test_every_key_of_a_block_is_told_apart(declared: Declared) -> None:
    assert len(set(declared.known)) == len(declared.known)
    assert all(word == key(word) for word in declared.known)


def test_the_catalogue_is_keyed_by_type_name() -> None:
    assert all(name == declared.name for name, declared in CATALOG.items())


def test_half_of_all_laws_have_sixteen_lines_or_fewer() -> None:
    functions = {declared.function for declared in load().values()}
    lengths = [len(inspect.getsource(function).splitlines()) for function in functions]
    assert median(lengths) <= 16, sorted(lengths)
