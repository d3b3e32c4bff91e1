"""A parameter is found by any of its names, or by an end of one that no other has."""

import random

import pytest

from ingot.errors import IngotError
from ingot.types.spellings import find_named, resolve_name, shorten_name, with_root

TREE = with_root(
    {
        "yield.yield_stress": ["yield.sy"],
        "flow.exponent": ["flow.n"],
        "flow.other.exponent": ["flow.other.p"],
        "K": [],
        "hardening.K": ["hardening.modulus"],
    },
    "model",
)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("yield.yield_stress", "yield.yield_stress"), ("yield.sy", "yield.yield_stress"),
        ("sy", "yield.yield_stress"), ("model.yield.sy", "yield.yield_stress"),
        ("n", "flow.exponent"), ("flow.exponent", "flow.exponent"),
        ("other.exponent", "flow.other.exponent"), ("K", "K"), ("model.K", "K"),
        ("hardening.K", "hardening.K"), ("modulus", "hardening.K"),
    ],
)  # fmt: skip
def test_any_name_or_unique_end_is_found(word: str, name: str) -> None:
    assert resolve_name(word, TREE, "missing") == name


def test_an_end_of_several_names_lists_them() -> None:
    with pytest.raises(IngotError) as refused:
        resolve_name("exponent", TREE, "missing")
    assert str(refused.value) == (
        "error[ambiguous-parameter]: 'exponent' may be flow.exponent or other.exponent\n"
        "  fix: write more of it, such as 'flow.exponent'"
    )


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("yeild_stress", "did you mean 'yield_stress'?"),
        ("yield.yield_stres", "did you mean 'yield.yield_stress'?"),
        ("y", "one of: yield_stress, flow.exponent, other.exponent, K, hardening.K"),
        ("stress", "did you mean 'yield_stress'?"), ("", "one of: "), (".sy", "one of: "),
    ],
)  # fmt: skip
def test_a_word_that_is_no_whole_name_is_refused(word: str, fix: str) -> None:
    with pytest.raises(IngotError) as refused:
        resolve_name(word, TREE, "there is no such")
    assert "error[unknown-parameter]: there is no such" in str(refused.value)
    assert fix in str(refused.value)


@pytest.mark.parametrize("seed", range(30))
def test_a_word_means_what_a_search_by_parts_says(seed: int) -> None:
    draw = random.Random(seed)
    names = {".".join(draw.choices("abc", k=draw.randint(1, 4))) for _ in range(12)}
    spellings = {n: [".".join(draw.choices("abcd", k=2))] for n in sorted(names)}
    for _ in range(40):
        parts = draw.choices("abcd", k=draw.randint(1, 3))
        every = {n: [n.split("."), *(s.split(".") for s in others)]
                 for n, others in spellings.items()}  # fmt: skip
        ends = {n for n, all in every.items() if any(p[-len(parts) :] == parts for p in all)}
        whole = {n for n, all in every.items() if parts in all}
        own = {n for n in whole if n == ".".join(parts)}
        assert set(find_named(".".join(parts), spellings)) == (own or whole or ends)


@pytest.mark.parametrize("seed", range(20))
def test_a_shortened_name_means_the_name_and_no_shorter_end_does(seed: int) -> None:
    rng = random.Random(seed)
    names = {".".join(rng.choices("abc", k=rng.randint(1, 4))) for _ in range(12)}
    tree = with_root(dict.fromkeys(names, ()), "model")
    for name in names:
        short = shorten_name(name, tree)
        assert resolve_name(short, tree, "missing") == name
        ends = [short.split(".", count)[-1] for count in range(1, short.count(".") + 1)]
        assert not any(find_named(end, tree) == [name] for end in ends)


def test_of_very_many_names_some_are_listed() -> None:
    with pytest.raises(IngotError, match=r"p0\.x, .* and 70 more"):
        resolve_name("?", {f"p{i}.x": () for i in range(100)}, "missing")
