"""A schema leaves sizes out; a digest lasts, and changes with all that the code depends on."""

import dataclasses

import torch

from ingot.fields.jit.schema import Schema, digest, schema_of, sources_of
from ingot.fields.shares import Share, parts_of
from ingot.fields.step import Ambient, Buffer, Old, State, Step

from .cases import cahn_hilliard, parsed
from .conftest import state_of


def schema(state: State, steps: tuple[Step, ...]) -> Schema:
    inputs = [*state.space.tensors(), *(state.look_up(s) for s in sources_of(steps))]
    found = schema_of(inputs, state.space)
    assert found is not None
    return found


def test_sizes_are_names_of_axes() -> None:
    steps = cahn_hilliard()
    small, large = (schema(state_of(sizes, "c"), steps) for sizes in ((16, 16), (30, 41)))
    assert small == large
    assert str(small).startswith("2D NONE on cpu: float64[n0, 1] float64[1, n1] float64[1]")
    assert "float64[n0, k1]" in str(small)


def test_components_rank_and_precision_are_part_of_a_schema() -> None:
    state = state_of((8, 9), "a")
    step = (Step("s", torch.neg, {"input": Buffer("a")}, ("b",)),)
    plain = schema(state, step)
    for other in (
        torch.rand(8, 9, 3, dtype=torch.float64),
        torch.rand(8, 9),
        torch.rand(8, 1).double(),
    ):
        state.buffers["a"] = other
        assert schema(state, step) != plain


def test_what_is_given_inside_is_not_read_from_outside() -> None:
    names = [getattr(source, "name", "") for source in sources_of(cahn_hilliard())]
    assert names == ["time", "c", "dt"]
    old = Step("o", torch.neg, {"input": Old("c"), "space": Ambient("space")}, ("c",))
    assert sources_of((old,)) == (Old("c"),)


def test_a_box_of_two_cells_has_no_schema() -> None:
    state = state_of((2, 9), "a")
    assert schema_of(state.space.tensors(), state.space) is None


def test_tensors_on_two_devices_have_no_schema() -> None:
    state = state_of((8, 9), "a")
    inputs = [*state.space.tensors(), torch.empty(8, 9, device="meta")]
    assert schema_of(inputs, state.space) is None


def test_a_digest_is_the_same_for_equal_steps_alone() -> None:
    made = schema(state_of((8, 9), "a"), cahn_hilliard())
    one, same = (digest(cahn_hilliard(), ("c",), made, "") for _ in range(2))
    assert one == same
    others = [
        digest(cahn_hilliard(), ("c", "mu"), made, ""),
        digest(cahn_hilliard()[1:], ("c",), made, ""),
        digest(cahn_hilliard(), ("c",), dataclasses.replace(made, mode="FFT_SLAB"), ""),
        digest(cahn_hilliard(), ("c",), dataclasses.replace(made, device="cuda:0"), ""),
        digest(cahn_hilliard(), ("c",), made, "-O3"),
        digest((*cahn_hilliard()[:-1], parsed("c", "2*mu", "mu")), ("c",), made, ""),
    ]
    assert len({one, *others}) == 7


def test_a_part_of_a_box_has_code_of_its_own() -> None:
    """Where ranks shift and add up otherwise, what was compiled for a whole box is not theirs."""
    whole, steps = state_of((16, 16), "c"), cahn_hilliard()
    part = state_of((16, 16), "c")
    share = Share(parts_of((16, 16), "FFT_SLAB", (1,)), 0)
    part.space = dataclasses.replace(part.space, share=share)
    found = [schema(state, steps) for state in (whole, part)]
    assert found[0].shapes == found[1].shapes
    names = {digest(steps, ["c"], each, "") for each in found}
    assert len(names) == 2
