"""`ingot.laws` is the catalogue: each law by its name, with its keywords, told to editors too."""

import inspect

import pytest

from ingot import IngotError, laws
from ingot.catalog import load
from ingot.model import ELSEWHERE


def test_the_stub_for_editors_is_the_one_printed() -> None:
    from benchmarks.stubs import STUB, stub

    assert STUB.read_text() == stub(), "run: python -m benchmarks.stubs"


def test_every_law_is_there_with_its_options_and_its_docstring() -> None:
    for name, law in load().items():
        maker = getattr(laws, name)
        wanted = {option.removesuffix("_") for option in inspect.signature(maker).parameters}
        assert wanted - {"name"} == set(law.options_known), name
        assert maker.__doc__ == inspect.getdoc(law.function)
    assert set(load()) < set(dir(laws))
    assert set(ELSEWHERE["Models"]) - set(dir(laws)) == {"ComposedModel", "ImplicitUpdate"}


def test_unknown_law_is_told_with_the_nearest() -> None:
    with pytest.raises(IngotError, match="did you mean 'VoceIsotropicHardening'"):
        _ = laws.VoceIsotropicHardenin  # type: ignore[reportAttributeAccessIssue]
    with pytest.raises(IngotError, match=r"call ingot\.implicit"):
        _ = laws.ImplicitUpdate  # type: ignore[reportAttributeAccessIssue]
    assert not hasattr(laws, "Nothing")
