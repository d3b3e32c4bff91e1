"""Sums of products of components by Einstein's convention."""

import itertools
from collections import Counter
from typing import Any

from ingot.types.algebra import add_up
from ingot.types.kinds import R2, SR2, SSR4, Quaternion, Vec
from ingot.types.refuse import refuse
from ingot.types.value import Scalar, Value, assemble, exact, places

__all__ = ["einsum"]

SHAPES: dict[tuple[int, ...], type[Value]] = {
    kind.base: kind for kind in (Scalar, Vec, Quaternion, SR2, R2, SSR4)
}

Entries = dict[tuple[int, ...], Scalar]  # by the index of each letter


def einsum(subscripts: str, *values: Value) -> Any:
    """Products of components, summed over the letters that the result lacks: `'ij,jk->ik'`.

    A letter is one axis of a kind, which for SR2 and SSR4 has 6 entries in Mandel order. Values are
    multiplied from left to right, and every sum is taken as early as it can be.
    """
    factors = [v if isinstance(v, Value) else Scalar(exact(v)) for v in values]
    letters, result = _letters(subscripts, factors)
    sizes: dict[str, int] = {}
    for word, factor in zip(letters, factors, strict=True):
        for letter, size in zip(word, factor.base, strict=True):
            if sizes.setdefault(letter, size) != size:
                counts = f"'{letter}' counts {sizes[letter]} entries and {size}"
                raise ValueError(f"einsum '{subscripts}': {counts}")
    kind = SHAPES.get(tuple(sizes[letter] for letter in result))
    if kind is None:
        shape = " x ".join(str(sizes[letter]) for letter in result)
        raise refuse(
            f"makes {shape} numbers by '{subscripts}', a shape of no kind",
            "sum over more letters in the same einsum, down to a Scalar, Vec, R2, SR2 or SSR4",
        )
    have, entries = "", {(): Scalar(1.0)}
    for i, factor in enumerate(factors):
        later = result + "".join(letters[i + 1 :])
        own = _keep(letters[i], have + later)
        entry = _contract([letters[i]], [{p: factor[p] for p in places(factor.base)}], own)
        kept = _keep(have + own, later)
        entries = _contract([have, own], [entries, entry], kept) if i else entry
        have = kept if i else own
    ordered = _contract([have], [entries], result)
    found = [ordered[place] for place in places(kind.base)]
    return found[0] if kind is Scalar else assemble(kind, found)


def _letters(subscripts: str, factors: list[Value]) -> tuple[list[str], str]:
    """The letters of each factor and of the result, which are those that occur once if not told."""
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    letters = given.split(",")
    if not arrow:
        result = "".join(sorted(x for x, n in Counter(given).items() if n == 1 and x != ","))
    wrong = ""
    if "." in given:
        wrong = "a law is for one point, so leave the dots out"
    elif not (given.replace(",", "") + result + "i").isalpha():
        wrong = "write letters, commas and one '->'"
    elif len(letters) != len(factors):
        wrong = f"it names {len(letters)} values, and {len(factors)} are given"
    elif len(set(result)) < len(result) or not set(result) <= set(given):
        wrong = f"the result '{result}' repeats a letter or names one that no value has"
    for word, factor in zip(letters, factors, strict=False):
        if not wrong and len(word) != len(factor.base):
            wrong = f"'{word}' does not fit {type(factor).__name__}, whose shape is {factor.base}"
            if len(word) == 2 and isinstance(factor, SR2):
                wrong += "; r2_from_sr2(...) is its matrix"
    if wrong:
        raise ValueError(f"einsum '{subscripts}': {wrong}")
    return letters, result


def _keep(letters: str, later: str) -> str:
    """Each letter once that is asked for later."""
    return "".join(x for x in dict.fromkeys(letters) if x in later)


def _contract(letters: list[str], factors: list[Entries], result: str) -> Entries:
    """The product of one or two factors, summed over the letters that the result lacks."""
    names = "".join(letters)
    sums: dict[tuple[int, ...], list[Any]] = {}
    for chosen in itertools.product(*factors):
        place = tuple(itertools.chain(*chosen))
        index = dict(zip(names, place, strict=True))
        if all(index[x] == i for x, i in zip(names, place, strict=True)):
            terms = [factor[at] for factor, at in zip(factors, chosen, strict=True)]
            product = terms[0] if len(terms) == 1 else terms[0] * terms[1]
            sums.setdefault(tuple(index[x] for x in result), []).append(product)
    return {place: add_up(terms) for place, terms in sums.items()}
