"""What a trace refuses: by name and line, with the remedy, in exactly these words.

The offending line of every hostile law ends in `# !`.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ingot import types
from ingot.catalog import Parameter, load
from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.types import R2, Scalar, Vec, where
from tests.program.declared import declared, program_of

TENSOR = torch.tensor(2.0, dtype=torch.float64)
LEARNED = torch.nn.Parameter(TENSOR.clone())
SINGLE = torch.tensor(0.1)
ARRAY = np.array([1.0, 2.0, 3.0])
Law = Callable[..., Any]

TRUTH = "reads whether a value is true (`if`, `and`, `bool`)"
CHOOSE = "use where(condition, a, b) instead"
ITSELF = "compute with the value itself"
PICK = "index by numbers, and choose by where(...)"
OURS = "use the functions of ingot.types"
OPAQUE = ", or declare @model(opaque=True)"
POLAR = f"use ingot.types.polar(f), or eigh3(sym(transpose(f) @ f)){OPAQUE}"
FEWER = "sum over more letters in the same einsum, down to a Scalar, Vec, R2, SR2 or SSR4"
DECLARE = "declare it as a Parameter of the law"
WEIGHT = f"{DECLARE}, or the law itself with @model(opaque=True)"
DOUBLE = "write constants as Python floats (float64)"


def branch(x: Scalar, y: Scalar) -> Scalar:
    if x > 0.0:  # !
        return x
    return y


def branch_on_equality(x: Scalar, y: Scalar) -> Scalar:
    return y if x == 0.0 else x  # !


def branch_on_difference(x: Scalar, y: Scalar) -> Scalar:
    return y if x != y else x  # !


def chained_comparison(x: Scalar, y: Scalar) -> Scalar:
    return where(0.0 < x < y, x, y)  # !


def both(x: Scalar, y: Scalar) -> Scalar:
    return where(x > 0.0 and y > 0.0, x, y)  # !


def negation(x: Scalar, y: Scalar) -> Scalar:
    return where(not x > 0.0, x, y)  # !


def loop(x: Scalar, y: Scalar) -> Scalar:
    while x < y:  # !
        x = x + 1.0
    return x


def builtin_maximum(x: Scalar, y: Scalar) -> Scalar:
    return max(x, y)  # !


def membership(x: Scalar, y: Scalar) -> Scalar:
    return x if x in (y, 1.0) else y  # !


def asks_bool(x: Scalar, y: Scalar) -> Scalar:
    return x * bool(y)  # !


def asks_float(x: Scalar, y: Scalar) -> Scalar:
    return x * float(y)  # !


def asks_int(x: Scalar, y: Scalar) -> Scalar:
    return x * int(y)  # !


def uses_math(x: Scalar, y: Scalar) -> Scalar:
    return x * math.exp(y)  # !


def counts_by_a_value(x: Scalar, y: Scalar) -> Scalar:
    for _ in range(y):  # !
        x = x + x
    return x


def list_by_a_value(x: Scalar, y: Scalar) -> Scalar:
    return [x, y][y]  # !


def component_by_a_value(x: Vec, y: Vec) -> Vec:
    return x * x[y[0]]  # !


def mask(x: Vec, y: Vec) -> Vec:
    return x[x > 0.0]  # !


def component_slice(x: Vec, y: Vec) -> Vec:
    return x * x[0:2]  # !


def sorts(x: Vec, y: Vec) -> Vec:
    return torch.sort(x)[0]  # !


def draws_alike(x: Scalar, y: Scalar) -> Scalar:
    return x * torch.rand_like(x)  # !


def draws_right(x: Scalar, y: Scalar) -> Scalar:
    return x * torch.rand(())  # !


def draws_left(x: Scalar, y: Scalar) -> Scalar:
    return torch.rand(()) * x  # !


def writes(x: Vec, y: Vec) -> Vec:
    x[0] = y[0]  # !
    return x


def adds_in_place(x: Vec, y: Vec) -> Vec:
    x[0] += y[0]  # !
    return x


def closes_over_a_tensor(x: Scalar, y: Scalar) -> Scalar:
    return x * TENSOR  # !


def closes_over_a_tensor_left(x: Scalar, y: Scalar) -> Scalar:
    return TENSOR * x  # !


def chooses_a_tensor(x: Scalar, y: Scalar) -> Scalar:
    return where(x > 0.0, TENSOR, y)  # !


def closes_over_a_parameter(x: Scalar, y: Scalar) -> Scalar:
    return x * LEARNED  # !


def closes_over_a_parameter_left(x: Scalar, y: Scalar) -> Scalar:
    return LEARNED * x  # !


def wraps_a_parameter(x: Scalar, y: Scalar) -> Scalar:
    return x * Scalar(LEARNED)  # !


def wraps_single_precision(x: Scalar, y: Scalar) -> Scalar:
    return x * Scalar(SINGLE)  # !


def single_precision(x: Scalar, y: Scalar) -> Scalar:
    return x * np.float32(0.1)  # !


def single_precision_left(x: Scalar, y: Scalar) -> Scalar:
    return np.float32(0.1) * x  # !


def single_precision_nan(x: Scalar, y: Scalar) -> Scalar:
    return x * np.float32("nan")  # !


def rounded_integer(x: Scalar, y: Scalar) -> Scalar:
    return x * (2**53 + 1)  # !


def endless_integer(x: Scalar, y: Scalar) -> Scalar:
    return x * 10**400  # !


def imaginary(x: Scalar, y: Scalar) -> Scalar:
    return x * 1j  # !


def nothing(x: Scalar, y: Scalar) -> Scalar:
    return x + None  # !


def singular_values(x: R2, y: R2) -> R2:
    return torch.linalg.svd(x)[0]  # !


def einstein(x: R2, y: R2) -> R2:
    return torch.einsum("ij,kl->ijkl", x, y)  # !


def sums_an_axis(x: Vec, y: Vec) -> Vec:
    return x * torch.sum(y, dim=0)  # !


def sums_an_axis_by_place(x: Vec, y: Vec) -> Vec:
    return x * torch.sum(y, 0)  # !


def norm_of_an_axis(x: Vec, y: Vec) -> Vec:
    return x * torch.norm(y, dim=0)  # !


def odd_stack(x: Vec, y: Vec) -> Vec:
    return torch.stack([x[0], y[0]])  # !


def numpy_array(x: Vec, y: Vec) -> Vec:
    return x * ARRAY  # !


def numpy_array_left(x: Vec, y: Vec) -> Vec:
    return ARRAY * x  # !


def numpy_function(x: Scalar, y: Scalar) -> Scalar:
    return np.exp(x)  # !


def numpy_matrix(x: Vec, y: Vec) -> Vec:
    return np.eye(3) @ x  # !


def inside_a_comprehension(x: Vec, y: Vec) -> Vec:
    return Vec.of(*[c if c > 0.0 else -c for c in x])  # !


HOSTILE: list[tuple[Law, str, str]] = [
    (branch, TRUTH, CHOOSE),
    (branch_on_equality, TRUTH, CHOOSE),
    (branch_on_difference, TRUTH, CHOOSE),
    (chained_comparison, TRUTH, CHOOSE),
    (both, TRUTH, CHOOSE),
    (negation, TRUTH, CHOOSE),
    (loop, TRUTH, CHOOSE),
    (builtin_maximum, TRUTH, CHOOSE),
    (membership, TRUTH, CHOOSE),
    (asks_bool, TRUTH, CHOOSE),
    (inside_a_comprehension, TRUTH, CHOOSE),
    (asks_float, "reads a value (`float`)", ITSELF),
    (asks_int, "reads a value (`int`)", ITSELF),
    (uses_math, "reads a value (`float`)", ITSELF),
    (counts_by_a_value, "indexes by a value", PICK),
    (list_by_a_value, "indexes by a value", PICK),
    (component_by_a_value, "indexes by a value or a mask", PICK),
    (mask, "indexes by a value or a mask", PICK),
    (component_slice, "indexes by a value or a mask", PICK),
    (sorts, "uses torch.sort", OURS + OPAQUE),
    (draws_alike, "uses torch.rand_like", OURS + OPAQUE),
    (draws_right, "uses an undeclared tensor", DECLARE),
    (draws_left, "uses an undeclared tensor", DECLARE),
    (writes, "writes into a value", "build a new one, for example SR2.of(a, b, ...)"),
    (adds_in_place, "writes into a value", "build a new one, for example SR2.of(a, b, ...)"),
    (closes_over_a_tensor, "uses an undeclared tensor", DECLARE),
    (closes_over_a_tensor_left, "uses an undeclared tensor", DECLARE),
    (chooses_a_tensor, "uses an undeclared tensor", DECLARE),
    (closes_over_a_parameter, "uses an nn.Parameter", WEIGHT),
    (closes_over_a_parameter_left, "uses an nn.Parameter", WEIGHT),
    (wraps_a_parameter, "uses an nn.Parameter", WEIGHT),
    (wraps_single_precision, "uses a constant of torch.float32", "write constants in float64"),
    (single_precision, "uses the constant np.float32(0.1)", DOUBLE),
    (single_precision_left, "uses the constant np.float32(0.1)", DOUBLE),
    (single_precision_nan, "uses the constant np.float32(nan)", DOUBLE),
    (rounded_integer, "uses the constant 9007199254740993", DOUBLE),
    (endless_integer, f"uses the constant {10**400}", DOUBLE),
    (imaginary, "uses the constant 1j", DOUBLE),
    (nothing, "uses the constant None", DOUBLE),
    (singular_values, "uses torch.linalg.svd", POLAR),
    (einstein, "makes 3 x 3 x 3 x 3 numbers by 'ij,kl->ijkl', a shape of no kind", FEWER),
    (sums_an_axis, "uses torch.sum with dim", OURS + OPAQUE),
    (sums_an_axis_by_place, "uses torch.sum with further arguments", OURS + OPAQUE),
    (norm_of_an_axis, "uses torch.norm of some axes", "use ingot.types.norm"),
    (odd_stack, "stacks values to a shape that no kind has", "build the kind: SR2.of(a, b, ...)"),
    (numpy_array, "uses a NumPy array", DECLARE),
    (numpy_array_left, "uses a NumPy array", DECLARE),
    (numpy_function, "uses numpy.exp", OURS),
    (numpy_matrix, "uses numpy.matmul", OURS),
]


def refusal(law: Law) -> str:
    with pytest.raises(IngotError) as raised:
        program_of(law)
    (problem,) = raised.value.problems
    assert problem.code == "untraceable"
    return str(problem)


def place(function: Law) -> tuple[str, int, str]:
    """File, number and text of the line that is marked."""
    lines, first = inspect.getsourcelines(function)
    at = next(i for i, line in enumerate(lines) if line.rstrip().endswith("# !"))
    return inspect.getsourcefile(function) or "", first + at, lines[at].rstrip()


@pytest.mark.parametrize(("law", "what", "fix"), HOSTILE, ids=lambda x: getattr(x, "__name__", ""))
def test_refusal_names_the_law_its_line_and_the_remedy(law: Law, what: str, fix: str) -> None:
    file, line, text = place(law)
    bare = text.lstrip()
    margin = " " * len(str(line)) + " | " + " " * (len(text) - len(bare))
    assert refusal(law) == (
        f"error[untraceable]: '{law.__name__}' {what}, which a point program cannot hold\n"
        f"  --> {file}:{line} in {law.__name__}\n"
        f"{line} | {text}\n"
        f"{margin}{'^' * len(bare)} {fix}"
    )


def positive(x: Scalar) -> Scalar:
    return x if x > 0.0 else -x  # !


def asks_a_helper(x: Scalar, y: Scalar) -> Scalar:
    return y + positive(x)


def test_refusal_in_a_helper_names_the_law_and_the_line_of_the_helper() -> None:
    file, line, _ = place(positive)
    rows = refusal(asks_a_helper).splitlines()
    assert rows[0].startswith("error[untraceable]: 'asks_a_helper' reads whether")
    assert rows[1] == f"  --> {file}:{line} in positive"


def adds_and_rebinds(x: Vec, y: Vec) -> Vec:
    x += y
    x *= 2.0
    return x


def exact_constants(x: Vec, y: Vec) -> Vec:
    return x * np.float64(0.1) + np.float64(0.1) * y + x * (2**53) - y * True + np.sqrt(2.0) * x


def chooses_by_equality(x: Scalar, y: Scalar) -> Scalar:
    return where((x == 0.0) | (x != y), x, y)


def asks_for_epsilon(x: Scalar, y: Scalar) -> Scalar:
    return x + types.eps(y)


def is_absent(x: Scalar, y: Scalar) -> Scalar:
    return x if y is None or y == None else y  # noqa: E711


@pytest.mark.parametrize(
    "law",
    [adds_and_rebinds, exact_constants, chooses_by_equality, asks_for_epsilon, is_absent],
    ids=lambda law: law.__name__,
)
def test_what_a_trace_may_hold_is_held_as_it_is(law: Law) -> None:
    program = program_of(law)
    numbers = torch.tensor([0.0, 1.0, -2.0, 3.0], dtype=torch.float64)
    kind = program.inputs[0].kind
    x, y = (n[:, None].expand(4, 3) if kind is Vec else n for n in (numbers, numbers.abs()))
    results, _ = Interpreter(program)({"x": x, "y": y})
    expected = law(kind(x.clone()), kind(y.clone())).data
    torch.testing.assert_close(results["out"], expected, rtol=1e-15, atol=0.0)


def misspelt(x: Scalar, y: Scalar) -> Scalar:
    return x.exp()  # !


def beyond_the_components(x: Vec, y: Vec) -> Vec:
    return x * x[3]  # !


def undefined(x: Scalar, y: Scalar) -> Scalar:
    return x * unheard_of  # type: ignore[name-defined]  # noqa: F821  # !


def divides_numbers(x: Scalar, y: Scalar) -> Scalar:
    return x * (1.0 / 0.0)  # !


def mixes_kinds(x: Vec, y: Vec) -> Vec:
    return x + R2.identity()  # !


def remainder(x: Scalar, y: Scalar) -> Scalar:
    return x % y  # !


def counts_a_scalar(x: Scalar, y: Scalar) -> Scalar:
    return x * len(y)  # !


FAILING = [
    misspelt, beyond_the_components, undefined, divides_numbers, mixes_kinds, remainder,
    counts_a_scalar,
]  # fmt: skip


@pytest.mark.parametrize("law", FAILING, ids=lambda law: law.__name__)
def test_error_inside_a_law_is_told_with_the_law_and_its_line(law: Law) -> None:
    file, line, _ = place(law)
    with pytest.raises(IngotError) as raised:
        program_of(law)
    (problem,) = raised.value.problems
    assert problem.code == "law-failed"
    assert law.__name__ in problem.message
    assert str(problem).splitlines()[1] == f"  --> {file}:{line} in {law.__name__}"


def calls_a_method(x: Scalar, y: Scalar) -> Scalar:
    return x.exp() + y  # type: ignore[reportAttributeAccessIssue]


def misspells_a_keyword(x: Scalar, y: Scalar) -> Scalar:
    return types.norm(x, esp=1.0) + y  # type: ignore[reportCallIssue]


def gives_one_too_many(x: Scalar, y: Scalar) -> Scalar:
    return types.exp(x, y)  # type: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("law", "fix"),
    [
        (calls_a_method, "write exp(...)"),
        (misspells_a_keyword, "write norm(a: Value, eps: Any = 0.0)"),
        (gives_one_too_many, "write exp(x: T)"),
    ],
)
def test_function_of_types_that_is_called_wrongly_is_told_with_how(law: Law, fix: str) -> None:
    with pytest.raises(IngotError) as raised:
        program_of(law)
    (problem,) = raised.value.problems
    assert (problem.code, problem.fix) == ("law-failed", fix)


def gives_nothing(x: Scalar, y: Scalar) -> Scalar:  # type: ignore[return]
    x + y


def gives_a_number(x: Scalar, y: Scalar) -> Scalar:
    return 1.0  # type: ignore[return-value]


def gives_another_kind(x: Scalar, y: Scalar) -> Scalar:
    return Vec.of(x, y, x)  # type: ignore[return-value]


def gives_a_flag(x: Scalar, y: Scalar) -> Scalar:
    return x > y  # type: ignore[return-value]


def gives_two(x: Scalar, y: Scalar) -> Scalar:
    return x, y  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("law", "found"),
    [
        (gives_nothing, "None"),
        (gives_a_number, "float"),
        (gives_another_kind, "Vec"),
        (gives_a_flag, "Flag"),
        (gives_two, "2 values"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_result_that_is_not_what_was_declared_is_told(law: Law, found: str) -> None:
    with pytest.raises(IngotError) as raised:
        program_of(law)
    (problem,) = raised.value.problems
    assert problem.code == "wrong-kind"
    assert law.__name__ in problem.message and found in problem.message
    assert problem.span is not None and problem.span.file == __file__
    assert problem.span.line == law.__code__.co_firstlineno and problem.fix


def scaled(x: Scalar, *, factor: Parameter[Scalar]) -> Scalar:  # type: ignore[type-arg]
    return x * factor


def test_law_of_a_test_leaves_the_catalogue_as_it_was() -> None:
    before = set(load())
    with declared(scaled):
        assert set(load()) == {*before, "scaled"}
    assert set(load()) == before
    assert [v.name for v in program_of(scaled).inputs] == ["x", "factor"]
