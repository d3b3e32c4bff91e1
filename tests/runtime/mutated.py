"""Loads and runs many mutations of a package in turn: `mutated.py FOLDER KIND FILE COUNT SEED`.

Prints how many were refused and how many gave the same numbers; ends with 3 at the first that gave
others, and is killed where one crashes.
"""

import copy
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ingot.errors import IngotError
from ingot.package.seal import seal

WORDS = (
    "", "x", "..", "../x.so", "float32", "SR2", "Scalar", "forward", "nobody", "T", "alpha",
    "a" * 64, "().__class__", "__import__('os').abort()",
)  # fmt: skip


def run(folder: Path, kind: str, given: Any) -> dict[str, Tensor]:
    """All numbers of a package: values and derivatives."""
    if kind in ("kernel", "inductor"):
        from ingot.runtime import load

        artifact = load(folder, backend="kernel" if kind == "kernel" else "inductor")
        with torch.no_grad():
            blocks = artifact.jacobian(given)
            found = artifact(given)
        return {**found, **{f"{y}:{x}": b for y, row in blocks.items() for x, b in row.items()}}
    from ingot import regions, train

    module = (train if kind == "joint" else regions).load(folder)
    x = given.clone().requires_grad_(kind == "joint")
    y = module(x)
    slopes = torch.autograd.grad(y.sum(), x) if x.requires_grad else ()
    return {"y": y.detach(), **{f"g{i}": g for i, g in enumerate(slopes)}}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    """Whether all numbers are equal to the last bit."""
    return a.keys() == b.keys() and all(
        x.dtype == b[n].dtype and torch.equal(x.nan_to_num(), b[n].nan_to_num())
        for n, x in a.items()
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a JSON document."""
    yield path
    items = value.items() if isinstance(value, dict) else []
    for key, inner in [*items, *(enumerate(value) if isinstance(value, list) else [])]:
        yield from places(inner, (*path, key))


def mutate(meta: Any, dice: random.Random) -> Any:
    """A document with one to four things removed, doubled, moved or made others."""
    meta = copy.deepcopy(meta)
    words = [*WORDS, *(p[-1] for p in places(meta) if p and isinstance(p[-1], str))]
    for _ in range(dice.choice([1, 1, 1, 2, 4])):
        path = dice.choice([p for p in places(meta) if p and p[0] != "seal"])
        at = meta
        for key in path[:-1]:
            at = at[key]
        change(at, path[-1], words, dice)
    return meta


def change(at: Any, last: Any, words: list[str], dice: random.Random) -> None:
    """Change one value of a list or a dictionary."""
    old, way = at[last], dice.randrange(7)
    if way == 0:
        del at[last]
    elif way == 1 and isinstance(at, list):
        at.insert(dice.randrange(len(at) + 1), copy.deepcopy(dice.choice(at)))
    elif way == 2 and isinstance(at, list):
        dice.shuffle(at)
    elif way == 3:
        at[last] = dice.choice([None, [], {}, True, 0, -1, 1e308, "", 2**70, [[]], old, [old]])
    elif isinstance(old, bool):
        at[last] = not old
    elif isinstance(old, int | float):
        near = [old + 1, -old, old * 2, 0, 1, old + 0.5, old * (1 + 1e-9), 10**9]
        at[last] = dice.choice(near)
    elif isinstance(old, str):
        at[last] = dice.choice([*words, old + "x", old[:-1], old.upper(), "../" + old, old])
    elif isinstance(old, list) and len(old) > 1:
        i, j = dice.sample(range(len(old)), 2)
        old[i], old[j] = old[j], old[i]
    elif isinstance(old, dict) and isinstance(at, dict):
        at[dice.choice(words)] = at.pop(last)


def main() -> None:
    """Mutate, seal, load, run, compare."""
    folder, kind, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    count, seed = int(sys.argv[4]), int(sys.argv[5])
    given = torch.load(folder.parent / "given.pt", weights_only=True)
    right = run(folder, kind, given)
    meta, dice = json.loads((folder / name).read_bytes()), random.Random(seed)
    tally = {"refused": 0, "same": 0}
    for number in range(count):
        changed = mutate(meta, dice)
        text = json.dumps(changed, indent=1).encode()
        (folder / name).write_bytes(seal(text) or text)
        print(number, file=sys.stderr, flush=True)
        try:
            found = run(folder, kind, given)
        except IngotError:
            tally["refused"] += 1
            continue
        if not same(found, right):
            print(json.dumps({"wrong": number, "meta": changed}))
            raise SystemExit(3)
        tally["same"] += 1
    print(json.dumps(tally))


if __name__ == "__main__":
    main()
