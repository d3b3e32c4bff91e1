"""`[Tensors]` become values: expressions, blocks of statements, references, columns of files."""

import tomllib
from pathlib import Path

import pytest
import torch

from ingot.drivers import build_driver
from ingot.errors import IngotError
from ingot.hit import read, read_text
from ingot.model import Tensors, build
from ingot.types import MRP, R2, SR2, WR2, MillerIndex, Scalar, Vec, euler_rodrigues


def tensors(**expressions: str) -> Tensors:
    blocks = [f"[{n}]\ntype = Python\nexpr = '''{e}'''\n[]" for n, e in expressions.items()]
    return Tensors(read_text("\n".join(["[Tensors]", *blocks, "[]"])))


def problem(found: Tensors, name: str) -> tuple[str, str]:
    with pytest.raises(IngotError) as raised:
        found[name]
    (told,) = raised.value.problems
    return told.code, told.message


@pytest.mark.parametrize(
    ("text", "kind", "shape"),
    [
        ("Scalar(1.0)", Scalar, ()),
        ("Scalar([1.0, 2.0])", Scalar, (2,)),
        ("Vec.fill(1, 2, 3)", Vec, (3,)),
        ("SR2.fill(0.1)", SR2, (6,)),
        ("SR2.zeros(3, 2)", SR2, (3, 2, 6)),
        ("R2.identity()", R2, (3, 3)),
        ("WR2(torch.tensor([1.0, 2.0, 3.0]))", WR2, (3,)),
        ("MRP([0.0, 0.1, 0.2])", MRP, (3,)),
        ("MillerIndex((1, 1, 0))", MillerIndex, (3,)),
        ("Scalar.full(4, fill_value=2.5)", Scalar, (4,)),
        ("Scalar(math.pi) * Scalar(np.sqrt(2.0))", Scalar, ()),
        ("linspace(Scalar(0.0).dynamic_batch, Scalar(1.0).dynamic_batch, 5)", Scalar, (5,)),
        ("exp(Scalar(torch.arange(3.0)))", Scalar, (3,)),
        ("SR2.fill(1, 2, 3).dynamic_batch.expand(7)", SR2, (7, 6)),
        ("Scalar(torch.ones(2, 12)).sub_batch.retag(1)", Scalar, (2, 12)),
        ("np.float64(2.0) * Scalar(3.0)", Scalar, ()),
    ],
)
def test_expression_gives_a_value(text: str, kind: type, shape: tuple[int, ...]) -> None:
    found = tensors(a=text)["a"]
    assert type(found) is kind
    assert found.data.shape == shape and found.data.dtype == torch.float64


def test_a_raw_tensor_stays_raw_and_is_double_by_default() -> None:
    found = tensors(a="torch.tensor([1.0, 2.0])")["a"]
    assert type(found) is torch.Tensor and found.dtype == torch.float64
    assert torch.tensor(1.0).dtype == torch.float32, "the default outside is left alone"


def test_statements_assign_a_result() -> None:
    found = tensors(
        a="\n      x = 2.0\n      for _ in range(3):\n        x = x * x\n      result = Scalar(x)\n"
    )
    assert float(found["a"]) == 256.0
    code, message = problem(tensors(a="x = 1"), "a")
    assert code == "tensor-expression" and "no 'result'" in message


def test_other_tensors_are_found_by_name_wherever_they_stand() -> None:
    found = tensors(b="Scalar(a.data * 2)", a="Scalar(c)", c="3.0")
    assert float(found["b"]) == 6.0
    assert found["a"] is found["a"], "evaluated once"


def test_a_circle_of_tensors_is_told() -> None:
    assert problem(tensors(a="b", b="a"), "a") == (
        "circular-tensor", "[a] refers to itself: a -> b -> a",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Scalar(unheard)", "NameError: name 'unheard' is not defined"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("SR2(torch.zeros(5))", "ValueError: SR2 needs a trailing shape (6,), got (5,)"),
        ("Scalar(", "SyntaxError: '(' was never closed (<a>, line 1)"),
        ("Vec.zeros() @ 3", "TypeError: no product of Vec and int"),
        ("Vec.zeros()[0:2]", "TypeError: a Vec is indexed by whole numbers"),
        (
            "x = Vec.zeros()\nx[0] = 1.0\nresult = x",
            "TypeError: a Vec cannot be written into: build a new one",
        ),
    ],
)
def test_expression_that_fails_is_told_with_its_reason(text: str, message: str) -> None:
    told = f"the expression of [a] fails: {message}"
    assert problem(tensors(a=text), "a") == ("tensor-expression", told)


@pytest.mark.parametrize("text", ["Scalar(torch.ones(2) * 1j)", "torch.ones(2) * 1j"])
def test_complex_numbers_are_refused_where_they_are_read(text: str) -> None:
    found = tensors(a=text, b="Scalar(torch.as_tensor(a.data).imag)")
    assert torch.equal(found.read_real("b").data, torch.ones(2).double())
    with pytest.raises(IngotError, match=r"\[Tensors/a\] holds complex numbers") as raised:
        found.read_real("a")
    (told,) = raised.value.problems
    assert told.code == "wrong-value" and told.span is not None and told.fix


@pytest.mark.parametrize("rows", ["Scalar(torch.ones(5) * 1j)", "torch.ones(5) * 1j"])
def test_a_driver_and_a_model_refuse_complex_numbers(rows: str) -> None:
    blocks = """
    [Models]
      [sum]
        type = ScalarLinearCombination
        from = 'x'
        to = 'y'
        weights = 'rows'
      []
    []
    [Drivers]
      [driver]
        type = TransientDriver
        model = 'sum'
        prescribed_time = 'rows'
      []
    []"""
    tree = read_text(f"[Tensors]\n[rows]\ntype = Python\nexpr = '{rows}'\n[]\n[]{blocks}")
    for make in (lambda: build(tree, "sum"), lambda: build_driver(tree, "driver")):
        with pytest.raises(IngotError, match="complex numbers"):
            make()


CSV = """time, s_xx, s_yy, s_zz, s_yz, s_xz, s_xy
0, 1, 2, 3, 4, 5, 6
0.5, 7, 8, 9, 10, 11, 12
"""


def from_csv(folder: Path, text: str, *rows: str) -> Tensors:
    (folder / "data.csv").write_text(text)
    (folder / "a.i").write_text("\n".join(["[Tensors]", "[a]", *rows, "[]", "[]"]))
    return Tensors(read(folder / "a.i"))


def test_columns_are_read_as_they_stand(tmp_path: Path) -> None:
    rows = ("type = CSVSR2", "csv_file = 'data.csv'", "variable = 's'")
    found = from_csv(tmp_path, CSV, *rows)["a"]
    assert type(found) is SR2
    assert found.data.tolist() == [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]
    rows = ("type = CSVScalar", "csv_file = 'data.csv'", "column_names = 'time'")
    assert from_csv(tmp_path, CSV, *rows)["a"].data.tolist() == [0.0, 0.5]


@pytest.mark.parametrize(
    ("rows", "text", "code", "words"),
    [
        (("variable = 'x'",), CSV, "unknown-column", "'x'"),
        ((), CSV, "missing-option", "exactly one"),
        (("variable = 's'", "column_names = 's'"), CSV, "missing-option", "exactly one"),
        (("column_names = 's_xx s_yy'",), CSV, "wrong-value", "1 columns"),
        (("variable = 's'",), "s\n1\n2, 3\n", "ragged-csv", "line 3"),
        (("variable = 's'",), "s\n1\nmuch\n", "wrong-value", "much"),
        (("variable = 's'",), "", "unknown-column", "'s'"),
    ],
)
def test_wrong_columns_are_told(
    tmp_path: Path, rows: tuple[str, ...], text: str, code: str, words: str
) -> None:
    found = from_csv(tmp_path, text, "type = CSVScalar", "csv_file = 'data.csv'", *rows)
    assert problem(found, "a")[0] == code
    assert words in problem(found, "a")[1]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = from_csv(tmp_path, CSV, "type = CSVScalar", "csv_file = 'b.csv'", "variable = 's'")
    assert problem(found, "a")[0] == "file-not-found"


GOLD = tomllib.loads((Path(__file__).parents[1] / "gold" / "expressions.toml").read_text())
NOT_UNTRUSTED = (
    "arange",
    "from_value",
)  # as long as a file likes, and a keyword that is not listed


EXPRESSIONS = [
    (text, untrusted)
    for text in GOLD["values"]
    for untrusted in (False, True)
    if not untrusted or not any(name in text for name in NOT_UNTRUSTED)
]


@pytest.mark.parametrize(("text", "untrusted"), EXPRESSIONS)
def test_expressions_give_the_numbers_of_the_peer(text: str, untrusted: bool) -> None:
    tree = read_text(f"[Tensors]\n[a]\ntype = Python\nexpr = '{text}'\n[]\n[]")
    found = Tensors(tree, untrusted=untrusted)["a"].data.double().flatten()
    expected = torch.tensor(GOLD["values"][text], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)


def test_random_rotations_are_spread_evenly_and_by_less_than_half_a_turn() -> None:
    torch.manual_seed(1)
    drawn = MRP.rand(4000)
    assert float(drawn.data.norm(dim=-1).max()) <= 1.0
    mean = euler_rodrigues(drawn).data.mean(0)
    assert float(mean.abs().max()) < 0.04, "a matrix of even rotations is zero on average"


def test_a_value_keeps_its_axes_in_another_precision() -> None:
    found = SR2.empty(2, 3).with_sub_batch_ndim(1).to(torch.float32)
    assert found.data.dtype == torch.float32 and found.sub == 1
