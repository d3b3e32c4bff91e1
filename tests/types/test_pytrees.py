"""Kinds of values go where torch takes nested tensors: transforms, compiled functions, trees."""

import pytest
import torch
from torch import Tensor

from ingot.graphs.torch_private import pytree
from ingot.types import KINDS, SR2, Flag, Scalar, Value, dev, norm

F64 = torch.float64


def draw(kind: type[Value], *batch: int, sub: int = 0, seed: int = 0) -> Value:
    generator = torch.Generator().manual_seed(seed)
    data = torch.randn((*batch, *kind.base), generator=generator, dtype=F64)
    return kind(data, sub_batch_ndim=sub)


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("sub", [0, 1])
def test_a_value_is_a_tree_of_its_tensor(kind: type[Value], sub: int) -> None:
    value = draw(kind, 2, 3, sub=sub)
    (leaf,), tree = pytree.tree_flatten(value)
    assert leaf is value.data
    again = pytree.tree_unflatten([leaf + 1], pytree.treespec_loads(pytree.treespec_dumps(tree)))
    assert type(again) is kind and again.sub == sub
    assert torch.equal(again.data, value.data + 1)
    ((path, _),) = pytree.tree_leaves_with_path({"strain": value})
    assert pytree.keystr(path) == "['strain'].data"


def test_trees_of_other_kinds_and_axes_differ() -> None:
    trees = [pytree.tree_structure(v) for v in (
        draw(Scalar, 3, 3), draw(Scalar, 3, 3, sub=1), Flag(torch.ones(3, 3, dtype=torch.bool)),
    )]  # fmt: skip
    assert len(set(map(str, trees))) == 3
    assert trees[0] != trees[1] != trees[2]


def test_anything_may_stand_in_the_place_of_the_tensor() -> None:
    axes = pytree.tree_map(lambda _: 0, {"strain": draw(SR2, 2), "t": draw(Scalar)})
    assert axes["strain"].data == 0 and type(axes["t"]) is Scalar


def flow(strain: SR2, scale: Scalar) -> dict[str, Value]:
    return {"size": norm(dev(strain)) * scale, "double": strain * 2.0}


@pytest.mark.parametrize("seed", range(3))
def test_transforms_take_and_give_kinds(seed: int) -> None:
    strain, scale = draw(SR2, 4, seed=seed), draw(Scalar, 4, seed=seed + 10)
    assert isinstance(strain, SR2) and isinstance(scale, Scalar)
    many = torch.func.vmap(flow)(strain, scale)
    assert type(many["size"]) is Scalar and type(many["double"]) is SR2
    torch.testing.assert_close(many["size"].data, flow(strain, scale)["size"].data)
    shared = torch.func.vmap(flow, in_dims=(0, None))(strain, Scalar(2.0))
    torch.testing.assert_close(shared["size"].data, 2.0 * norm(dev(strain)).data)

    def total(strain: SR2) -> Tensor:
        return flow(strain, scale)["size"].data.sum()

    slope = torch.func.grad(total)(strain)
    assert type(slope) is SR2
    leaf = strain.data.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(total(SR2(leaf)), leaf)
    torch.testing.assert_close(slope.data, wanted)
    _, along = torch.func.jvp(lambda x: flow(x, scale), (strain,), (strain,))
    torch.testing.assert_close(along["size"].data, flow(strain, scale)["size"].data)


def test_compiled_functions_take_and_give_kinds() -> None:
    """In torch 2.11 and 2.12 Dynamo breaks the graph where a value is made, and goes on."""
    compiled = torch.compile(flow, backend="eager")
    strain, scale = draw(SR2, 4), draw(Scalar, 4)
    assert isinstance(strain, SR2) and isinstance(scale, Scalar)
    found = compiled(strain, scale)
    assert {n: type(v) for n, v in found.items()} == {"size": Scalar, "double": SR2}
    torch.testing.assert_close(found["size"].data, flow(strain, scale)["size"].data)
