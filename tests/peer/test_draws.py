"""Draws through the peer can fail: answers spoiled on purpose are found."""

from pathlib import Path
from typing import Any

import pytest
import torch

from ingot.catalog import load
from tests.peer.draws import (
    ROOT,
    STEP,
    TABLE,
    Draw,
    Tally,
    compare,
    draw_and_compare,
    draws_of,
    ours,
    peer_types,
)

DRAW = next(draws_of(load()["VoceIsotropicHardening"], 0))
PEER = ROOT / ".peer" / "bin" / "python"


def answer_as_ours(draw: Draw) -> dict[str, Any]:
    """What a peer would say that agrees with us in everything."""
    values, slopes = ours(draw)
    steps = (STEP, -STEP, STEP / 4, -STEP / 4)
    moved = {
        name: [
            ours(replace_input(draw, name, draw.inputs[name] + step * draw.along[name]))[0]
            for step in steps
        ]
        for name in draw.along
    }
    return {"values": values, "slopes": slopes, "moved": moved}


def replace_input(draw: Draw, name: str, x: torch.Tensor) -> Draw:
    return Draw(
        draw.type, draw.name, draw.text, draw.model, draw.program, {**draw.inputs, name: x}, {}, 0
    )


def told(theirs: dict[str, Any]) -> list[str]:
    tally = Tally()
    compare(DRAW, theirs, tally)
    return tally.found


def test_a_peer_that_agrees_has_no_difference() -> None:
    assert told(answer_as_ours(DRAW)) == []


def test_a_spoiled_value_is_found() -> None:
    theirs = answer_as_ours(DRAW)
    theirs["values"]["isotropic_hardening"][1] *= 1 + 1e-9
    assert "isotropic_hardening" in told(theirs)[0]


def test_a_spoiled_slope_beside_spoiled_differences_is_found() -> None:
    theirs = answer_as_ours(DRAW)
    by = "of_saturation_rate_0"
    theirs["slopes"][by]["isotropic_hardening"][0] *= 1.01
    assert told(theirs) == []  # differences of its values still say what we say
    for at, step in zip(theirs["moved"][by], (STEP, -STEP, STEP / 4, -STEP / 4), strict=True):
        at["isotropic_hardening"][0] += 0.1 * step
    assert f"isotropic_hardening:{by}" in told(theirs)[0]


def test_a_slope_that_the_peer_leaves_out_is_compared_with_differences() -> None:
    theirs = answer_as_ours(DRAW)
    theirs["slopes"] = {}
    tally = Tally()
    compare(DRAW, theirs, tally)
    assert tally.found == []
    assert tally.counts["slopes compared with the peer's"] == 0
    assert tally.counts["slopes compared with differences of the peer's values"] > 0


def test_an_output_that_the_peer_lacks_is_found() -> None:
    theirs = answer_as_ours(DRAW)
    theirs["values"]["other"] = theirs["values"].pop("isotropic_hardening")
    assert "other" in told(theirs)[0]


@pytest.mark.exhaustive
@pytest.mark.skipif(not (PEER.exists() and TABLE.exists()), reason="the peer is not installed")
def test_every_type_says_what_the_peer_says() -> None:
    tally = draw_and_compare(Path(PEER), peer_types(), [0])
    assert tally.found == []
    assert tally.types == set(peer_types())
