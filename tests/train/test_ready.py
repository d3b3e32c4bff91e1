"""A call like one before is not examined; one that differs in anything that matters is."""

from collections.abc import Iterator
from unittest import mock

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

import ingot.train as train
from ingot.errors import IngotError
from ingot.train.ready import Ready, is_whole, whole
from tests.train.models import disagreement, eager, mlp


@pytest.fixture
def examined() -> Iterator[mock.Mock]:
    """Counts the calls that were examined."""
    with mock.patch.object(Ready, "checked", autospec=True, side_effect=Ready.checked) as spy:
        yield spy


def given(rows: int = 4, *, grad: bool = True) -> Tensor:
    return torch.randn(rows, 3, dtype=torch.float64, requires_grad=grad)


def test_only_a_call_unlike_the_last_ones_is_examined(examined: mock.Mock) -> None:
    model = mlp()
    joint = eager(model, (given(),), dynamic="batch")
    for _ in range(3):
        for x in (given(), given(7), given(grad=False), given(3)[:, :].t().contiguous().t()):
            torch.testing.assert_close(joint(x), model(x))
    assert examined.call_count == 4
    with torch.no_grad():
        joint(given())
    assert examined.call_count == 5


def test_what_differs_after_a_call_like_the_last_is_noticed() -> None:
    model = mlp()
    joint = eager(model, (given(grad=False),), dynamic="batch")
    x = given(grad=False)
    assert joint(x).equal(joint(x))
    with pytest.raises(IngotError, match="'input' is float32"):
        joint(x.float())
    with pytest.raises(IngotError, match=r"'input' has shape \(4, 2\)"):
        joint(x[:, :2])
    with pytest.raises(IngotError, match="'input' asks for a gradient"):
        joint(x.clone().requires_grad_())
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(IngotError, match="autocast"):
        joint(x)
    with pytest.raises(IngotError, match="'input' is a list; it was traced as a tensor"):
        joint([x])
    with pytest.raises(IngotError, match="takes 1 arguments, 2 were given"):
        joint(x, x)
    with pytest.raises(IngotError, match="tensor subclass"):
        joint(nn.Buffer(x).as_subclass(type("Own", (Tensor,), {})))
    first = joint.get_submodule("0")
    first._parameters["weight"] = nn.Parameter(torch.zeros(8, 3))
    with pytest.raises(IngotError, match=r"'0\.weight' is float32"):
        joint(x)


def test_a_fixed_value_is_compared_at_every_call() -> None:
    joint = eager(lambda x, n: x * n, (torch.ones(2), 3))
    x = torch.ones(2)
    assert joint(x, 3).equal(joint(x, 3))
    for wrong in (4, 3.0, torch.tensor(3)):
        with pytest.raises(IngotError, match="it was traced as 3"):
            joint(x, wrong)


def test_a_number_to_be_negated_or_conjugated_is_read_as_it_is() -> None:
    joint = eager(lambda x: x * 2, (torch.ones(3),))
    plain = torch.tensor([1 + 2j, 3 - 1j, 2j]).conj()
    for x in (torch.ones(3), plain.imag, torch.ones(3), plain.imag):
        assert not (x.is_neg() and is_whole(x)) and is_whole(whole(x))
        assert joint(x).tolist() == [2 * v for v in x.tolist()]


def test_transforms_and_tangents_are_refused_not_lost() -> None:
    joint = eager(lambda x: x * 2, (torch.ones(3),))
    x = torch.ones(3)
    with torch.no_grad():
        for _ in range(3):
            assert joint(x).tolist() == [2, 2, 2]
            with forward_ad.dual_level(), pytest.raises(IngotError, match="carries a tangent"):
                joint(forward_ad.make_dual(x, x))
            with pytest.raises(IngotError, match=r"by a transform of torch\.func"):
                torch.func.vmap(joint)(torch.ones(2, 3))
            with pytest.raises(IngotError, match=r"by a transform of torch\.func"):
                torch.func.jvp(joint, (x,), (x,))


def test_a_tensor_given_twice_is_right() -> None:
    joint = eager(torch.sub, (torch.ones(3), torch.zeros(3)))
    x, y = torch.randn(3), torch.randn(3)
    for a, b in ((x, y), (x, x), (x, y), (y, y)):
        assert joint(a, b).equal(a - b)


def test_views_and_nested_results_are_made_at_every_call(examined: mock.Mock) -> None:
    def function(x: Tensor) -> dict[str, object]:
        y = x * 2
        return {"pair": (y, y[:, 1:]), "flat": y.view(-1), "given": x.t(), "rows": x.shape[0]}

    joint = eager(function, (torch.ones(4, 3, requires_grad=True),), dynamic="batch")
    for rows in (4, 5, 4, 5, 5):
        x = torch.randn(rows, 3, requires_grad=True)
        assert disagreement(function, joint, (x,)) == 0
        with torch.no_grad():
            found = joint(x)
        assert found["given"]._base is x and found["rows"] == rows
        assert found["pair"][1].data_ptr() == found["pair"][0].data_ptr() + 4
    assert examined.call_count == 4


def test_without_gradients_compiled_code_is_quiet(mlp_package: object) -> None:
    joint = train.load(str(mlp_package))
    for p in joint.parameters():
        p.requires_grad_(False)
    for _ in range(2):
        assert not joint(given(grad=False)).requires_grad
        with torch.no_grad():
            assert not joint(given()).requires_grad
        assert joint(given()).requires_grad
