"""Sizes stay open by name, and what a trace takes for granted of them can be asked."""

import torch

from ingot.regions.sizes import Sizes


def test_size_is_fixed_without_a_word_but_can_be_asked_for() -> None:
    sizes = Sizes({"batch": 4, "length": 5})
    x = sizes.tensor(("batch", "length"), torch.float32, "cpu", grad=False)
    assert sizes.guards() == () and sizes.fixed() == {}
    assert x.shape[0] < 10
    assert sizes.guards() == ("batch < 10",)
    assert x.shape[1] == 5
    assert sizes.fixed() == {"length": "5"}
