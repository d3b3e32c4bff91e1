"""The C functions of a package: a C program with no other dependency gets Python's numbers."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from ingot.hit import read_text
from ingot.model import Factory
from ingot.options import Newton, knobs_of
from ingot.package.header import ERRORS, LAYOUTS, Notes, write_header
from ingot.program import trace
from ingot.program.program import find_first_guesses
from ingot.types import KINDS
from tests.package.c_calls import ALIAS, NULL, SHIFTED, Array, CCall, CProgram, CResult, Place
from tests.packages import (
    DECAY,
    RATE,
    Made,
    decay,
    diffusion,
    elastic,
    inputs_of,
    plastic,
    single,
    steel,
)  # fmt: skip

WRONG = {word: -i for i, word in enumerate(ERRORS, 1)}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[], Made]], CProgram]:
    """C programs that call packages, each compiled once."""

    @cache
    def program(package: Callable[[], Made]) -> CProgram:
        return CProgram(package(), tmp_path_factory.mktemp("driver"))

    return program


Programs = Callable[[Callable[[], Made]], CProgram]


def call_of(
    program: CProgram, inputs: Mapping[str, torch.Tensor], points: int, **more: Any
) -> CCall:
    """A lawful call, every array in memory of its own."""
    values = [inputs[v.name].numpy().reshape(-1) for v in program.meta.inputs]
    return CCall(points, values, [Place()] * len(program.sizes), **more)


def expected(program: CProgram, call: CCall) -> tuple[dict[int, Array], tuple[Any, ...]]:
    """Python's outputs, blocks and adjoints of a call by their places, and each solve's status.

    At failed points they are NaN, but adjoints are zero where all cotangents are.
    """
    one = program.one
    meta, artifact, points = one.package.metadata, one.artifact(), call.points
    if call.rules is not None:
        solvers = []
        for solver, rule in zip(meta.solvers, call.rules, strict=True):
            words = {
                k.name: k.choices[int(rule[k.name])] if k.choices
                else int(rule[k.name]) if k.c_type == "int32_t" else rule[k.name]
                for k in knobs_of(Newton)
            }  # fmt: skip
            solvers.append(msgspec.structs.replace(solver, **words))
        artifact = artifact.with_rules(msgspec.structs.replace(meta, solvers=tuple(solvers)))
    for p, given in zip(meta.parameters, call.parameters or (), strict=False):
        mode, count, values = given
        if mode:
            v = p.variable
            batch = (count,) if count > 1 else ()
            own = values.astype(meta.dtype).reshape((*batch, *v.sub_batch, *v.base))
            artifact.set_parameter(v.name, own)
    inputs = {
        v.name: torch.as_tensor(np.array(x)).reshape(points, *v.sub_batch, *v.base)
        for v, x in zip(meta.inputs, call.values, strict=True)
    }
    with torch.no_grad():
        found = list(artifact(inputs).values())
    status = artifact.status
    if call.jacobian:
        by_input, by_parameter = artifact.jacobian(inputs), artifact.param_jacobian(inputs)
        for b in meta.derivatives:
            x = {**by_input.get(b.output, {}), **by_parameter.get(b.output, {})}[b.input]
            found.append(x.expand(points, *x.shape) if b.batch_independent else x)
    silent = torch.zeros(points, dtype=torch.bool)
    if call.vjp:
        bars = {
            v.name: torch.as_tensor(np.array(program.against(call, i)))
            .to(artifact.dtype).reshape(points, *v.sub_batch, *v.base)
            for v, i in zip(meta.outputs, program.cotangents, strict=True)
            if call.arrays[i].mode != NULL
        }  # fmt: skip
        silent = ~torch.stack(
            [silent, *((x != 0).reshape(points, -1).any(1) for x in bars.values())]
        ).any(0)
        values = [*inputs.values(), *(x.detach() for _, x in artifact.named_parameters())]
        found += artifact._backend.pull(values, bars)[1].values()
    bad = torch.zeros(points, dtype=torch.bool)
    for s in status:
        bad |= ~s.converged.expand(points)
    places = [i for i in program.active(call) if i >= len(meta.inputs)]
    places = [i for i in places if i not in program.cotangents]
    arrays = {}
    for i, x in zip(places, found, strict=True):
        own = x.detach().expand(points, *x.shape[1:]).clone()
        own[bad] = torch.nan
        own[bad & silent] = 0.0 if i >= program.cotangents.stop else torch.nan
        arrays[i] = own.numpy().reshape(-1)
    return arrays, status


def check(program: CProgram, call: CCall, result: CResult) -> None:
    """A lawful call gave Python's numbers, and left its inputs alone."""
    arrays, status = expected(program, call)
    failed = np.zeros(call.points, bool)
    for i, s in enumerate(status):
        rows = result.status[i * call.points : (i + 1) * call.points]
        failed |= (s.reason != 0).numpy()
        if call.status:
            np.testing.assert_array_equal(rows["reason"], s.reason.numpy())
            np.testing.assert_array_equal(rows["iterations"], s.iterations.numpy())
            np.testing.assert_array_equal(rows["residual"], s.residual.numpy())
    assert result.returned == failed.sum()
    moved = {call.arrays[i].a for i in arrays if call.arrays[i].mode == ALIAS}
    for i, wanted in arrays.items():
        place = call.arrays[i]
        np.testing.assert_array_equal(result.arrays[place.a if place.mode == ALIAS else i], wanted)
    given = dict(enumerate(call.values)) | {i: program.against(call, i) for i in program.cotangents}
    for i, x in given.items():
        if i not in moved:
            np.testing.assert_array_equal(result.arrays[i], x)


@pytest.mark.parametrize("package", [decay, plastic, diffusion])
@pytest.mark.parametrize("points", [0, 1, 5, 67])
def test_c_program_gets_the_numbers_of_python(
    package: Callable[[], Made], points: int, programs: Programs
) -> None:
    program = programs(package)
    call = call_of(program, inputs_of(package(), points), points)
    (result,) = program([call])
    if points:
        check(program, call, result)
    assert result.returned == 0


def test_c_program_is_told_how_many_points_failed(programs: Programs) -> None:
    program, inputs = programs(decay), inputs_of(decay(), 5)
    inputs["T"][1] = inputs["T"][4] = 0.0
    inputs["t"][1] = inputs["t"][4] = torch.inf
    call = call_of(program, inputs, 5)
    (result,) = program([call])
    assert result.returned == 2
    check(program, call, result)
    for x in result.arrays[len(program.meta.inputs) :]:
        assert np.isnan(x).tolist() == [False, True, False, False, True]


def test_wrong_number_of_points_of_a_stored_batch_is_refused(programs: Programs) -> None:
    program = programs(elastic)
    calls = [call_of(program, inputs_of(elastic(), n), n) for n in (3, 5)]
    wrong, right = program(calls)
    assert wrong.returned == WRONG["points"]
    check(program, calls[1], right)


def test_parameters_are_read_for_each_point_or_once(programs: Programs) -> None:
    program, inputs = programs(decay), inputs_of(decay(), 5)
    many, one, none = np.linspace(2.0, 6.0, 5), np.array([5.0]), np.empty(0)
    chosen = [
        [(1, 5, many), (0, 0, none)],
        [(1, 1, one), (0, 0, none)],
        [(1, 5, many), (1, 5, many / 9)],
    ]
    calls = [call_of(program, inputs, 5, parameters=p) for p in chosen]
    results = program(calls)
    for call, result in zip(calls, results, strict=True):
        check(program, call, result)
    first = len(program.meta.inputs)
    assert not np.array_equal(results[0].arrays[first], results[1].arrays[first])
    (wrong,) = program([call_of(program, inputs, 5, parameters=[(1, 3, many), (0, 0, none)])])
    assert wrong.returned == WRONG["count"]


def test_parameters_out_of_range_are_refused(programs: Programs) -> None:
    program, inputs = programs(steel), inputs_of(steel(), 70)
    none = (0, 0, np.empty(0))
    many = np.linspace(-0.9, 0.45, 70)
    lawful = [[none, (1, 70, many)], [(1, 1, np.array([1e-300])), none], [none, none]]
    results = program([call_of(program, inputs, 70, parameters=p) for p in lawful])
    assert [r.returned for r in results] == [0, 0, 0]
    wrong = [[none, (1, 1, np.array([x]))] for x in (0.5, -1.0, 7.0, np.nan, np.inf)]
    for at in (0, 33, 69):
        wrong.append([none, (1, 70, np.where(np.arange(70) == at, 0.5, many))])
    wrong.append([(1, 1, np.array([0.0])), none])
    results = program([call_of(program, inputs, 70, parameters=p) for p in wrong])
    assert {r.returned for r in results} == {WRONG["range"]}
    header = steel().folder / "steel.h"
    assert "nu: Scalar, 1 number; finite, above -1 and below 0.5 */" in header.read_text()


def rules_of(one: Made, **other: float) -> list[dict[str, float]]:
    """The rules of the source file as C holds them, some of them changed."""
    rules = [
        {k.name: k.c_value(getattr(s, k.name)) for k in knobs_of(Newton)}
        for s in one.package.metadata.solvers
    ]
    return [{**rule, **other} for rule in rules]


def test_rules_are_those_that_the_caller_gives(programs: Programs) -> None:
    program, inputs = programs(decay), inputs_of(decay(), 67)
    chosen = [{}, {"abs_tol": 1e-3, "rel_tol": 0.0}, {"max_its": 2}, {"stop": 1}, {"linesearch": 1}]
    calls = [call_of(program, inputs, 67, rules=rules_of(decay(), **other)) for other in chosen]
    results = program(calls)
    for call, result in zip(calls, results, strict=True):
        check(program, call, result)
    iterations = [r.status["iterations"] for r in results]
    assert iterations[1].sum() < iterations[0].sum()
    assert results[2].returned > 0
    assert len(set(iterations[3])) == 1 < len(set(iterations[0]))


@pytest.mark.parametrize("name", [k.name for k in knobs_of(Newton)])
def test_rules_out_of_range_are_refused(name: str, programs: Programs) -> None:
    program, inputs = programs(decay), inputs_of(decay(), 1)
    wrong = [-1.0, 3e9, np.nan, np.inf, -np.inf]
    if next(k for k in knobs_of(Newton) if k.name == name).c_type == "int32_t":
        wrong = [-1.0, -(2.0**31)]
    results = program(
        [call_of(program, inputs, 1, rules=rules_of(decay(), **{name: x})) for x in wrong]
    )
    bad = [
        r.returned
        for r, x in zip(results, wrong, strict=True)
        if not name.endswith("tol") or x != 3e9
    ]
    assert set(bad) - ({0} if name == "linesearch_cutback" else set()) == {WRONG["rules"]}


def test_state_is_updated_in_place(programs: Programs) -> None:
    for package in (decay, plastic):
        program, one = programs(package), package()
        names = [v.name for v in one.package.metadata.inputs]
        begin = len(names)
        call = call_of(program, inputs_of(one, 67), 67)
        for i, v in enumerate(one.package.metadata.outputs):
            if f"{v.name}~1" in names:
                call.arrays[begin + i] = Place(ALIAS, names.index(f"{v.name}~1"))
        assert any(place.mode == ALIAS for place in call.arrays)
        (result,) = program([call])
        check(program, call, result)
        together = CCall(call.points, call.values, call.arrays, rules=rules_of(one, stop=1))
        shifted = [Place(p.mode, p.a, 1) if p.mode == ALIAS else p for p in call.arrays]
        for refused in (together, CCall(call.points, call.values, shifted)):
            refused.arrays = list(refused.arrays)
            (result,) = program([refused])
            assert result.returned == WRONG["overlap"]
            for x, given in zip(result.arrays, call.values, strict=False):
                np.testing.assert_array_equal(x, given)


def test_wrong_pointers_are_refused_and_nothing_is_written(programs: Programs) -> None:
    program, inputs = programs(decay), inputs_of(decay(), 3)
    calls = []
    for i in range(len(program.sizes)):
        for place, word in ((Place(NULL), "pointer"), (Place(SHIFTED, 1), "alignment")):
            call = call_of(program, inputs, 3, wrong={word})
            call.arrays[i] = place
            calls.append(call)
    calls += [call_of(program, inputs, 3, no_arrays=n, wrong={"pointer"}) for n in (1, 2, 4)]
    calls += [call_of(program, inputs, 3, status=2, wrong={"alignment"})]
    for call, result in zip(calls, program(calls), strict=True):
        (word,) = call.wrong
        assert result.returned == WRONG[word]
        for x in result.arrays[len(program.meta.inputs) :]:
            assert set(x.view(np.uint8)) == {0x5A}


def test_memory_that_runs_out_is_told(tmp_path: Path, programs: Programs) -> None:
    thrower = "#include <new>\n" + "\n".join(
        f"void* operator new[](std::size_t{more}) {{ throw std::bad_alloc(); }}"
        for more in ("", ", std::align_val_t")
    )
    (tmp_path / "thrower.cpp").write_text(thrower)
    flags = ["-O0"]
    program = CProgram(decay(), tmp_path, *flags)
    subprocess.run(
        ["g++", "driver.o", "package.o", "-std=c++17", "thrower.cpp", "-o", "driver"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    (result,) = program([call_of(program, inputs_of(decay(), 3), 3)])
    assert result.returned == WRONG["memory"]


MESSAGES = r"""
#include <string.h>
#include "decay.h"
int main(void) {
  decay_rules rules[decay_solves];
  if (decay_default_rules(NULL) != decay_error_pointer) return 1;
  if (decay_default_rules(rules) != 0 || rules[decay_solve_update].abs_tol != 1e-10) return 2;
  if (rules[0].stop != decay_stop_point || rules[0].linesearch != decay_linesearch_NONE) return 3;
  for (int64_t code = 3; code >= -9; --code)
    if (strlen(decay_message(code)) < 10) return 4;
  return strstr(decay_message(decay_error_rules), "rule") == NULL;
}
"""


def test_rules_of_the_file_and_words_of_errors_are_there(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(MESSAGES)
    kernel = decay().package.metadata.kernel
    assert kernel is not None
    library = decay().folder / next(iter(kernel.libraries.values()))
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "main.c"]
    subprocess.run([*command, f"-I{decay().folder}", str(library)], cwd=tmp_path, check=True)
    subprocess.run(["./a.out"], cwd=tmp_path, check=True)


# the text


def text_of(one: Made) -> str:
    kernel = one.package.metadata.kernel
    assert kernel is not None
    return (one.folder / kernel.header).read_text()


def test_header_names_blocks_in_order() -> None:
    text, meta = text_of(decay()), decay().package.metadata
    rows = re.findall(r"decay_\w+ = (\d+), /\* ([^:,]+)", text)
    found = {said: int(i) for i, said in rows}
    for names in ([v.name for v in meta.inputs], [v.name for v in meta.outputs],
                  [p.variable.name for p in meta.parameters],
                  [f"d {b.output} / d {b.input}" for b in meta.derivatives]):  # fmt: skip
        assert [found[n] for n in names] == list(range(len(names)))
    assert "decay_blocks = 14" in text and "decay_solves = 1" in text


def test_header_says_what_feeds_old_values_and_how_tensors_lie() -> None:
    text = text_of(plastic())
    assert re.search(
        r"plastic_strain~1: SR2, 6 numbers; give it update_out_plastic_strain of", text
    )
    assert "11, 22, 33, then sqrt(2) times 23, 13, 12" in text
    assert re.search(
        r"t~1: Scalar, 1 number; give it decay_in_t of the step before", text_of(decay())
    )
    assert "d c / d c~1, 5 x 5 x 1 x 1 numbers" in text_of(diffusion())
    assert "float* const* outputs" in text_of(single())
    assert set(KINDS) <= set(LAYOUTS)


def test_old_values_are_fed_under_other_names_too() -> None:
    meta = decay().package.metadata
    renamed = tuple(
        msgspec.structs.replace(v, name="before" if v.name == "alpha~1" else v.name)
        for v in meta.inputs
    )
    text = write_header(
        msgspec.structs.replace(meta, inputs=renamed, derivatives=()),
        Notes(inputs={"before": "alpha~1"}),
    )
    assert "before: Scalar, 1 number; give it decay_out_alpha of the step before" in text


def test_find_first_guesses_are_told() -> None:
    bare = DECAY.replace("predictor = 'guess'", "")
    model = Factory(read_text(bare, "model.i")).model("decay")
    guesses = find_first_guesses(trace(model))
    assert guesses == {"alpha"}
    assert find_first_guesses(decay().program) == set()
    meta = decay().package.metadata
    text = write_header(meta, Notes(guesses={"T"}))
    assert re.search(r"T: Scalar, 1 number; only where a solve starts", text)


ODD = [
    "a/b",
    "a b",
    "a_b",
    "a~1",
    "a_old",
    "int",
    "*/",
    "/*",
    "??/",
    "α",
    "β",
    "x" * 70,
    "1",
    "\\",
    "~",
    "",
]


@pytest.mark.parametrize(
    "compiler", [["gcc", "-std=c99"], ["g++", "-std=c++98"], ["g++", "-std=c++20"]]
)
def test_header_compiles_whatever_variables_are_called(compiler: list[str], tmp_path: Path) -> None:
    meta = decay().package.metadata
    assert meta.kernel is not None
    like = meta.inputs[0]
    variables = tuple(msgspec.structs.replace(like, name=name) for name in ODD)
    block = meta.derivatives[0]
    odd = msgspec.structs.replace(
        meta, inputs=variables, outputs=variables,
        parameters=tuple(
            msgspec.structs.replace(meta.parameters[0], variable=v) for v in variables
        ),
        derivatives=tuple(msgspec.structs.replace(block, output=n, input=n) for n in ODD),
        origin=msgspec.structs.replace(meta.origin, file="a*/b/*.i"),
    )  # fmt: skip
    (tmp_path / "odd.h").write_text(write_header(odd))
    (tmp_path / "main.c").write_text('#include "odd.h"\nint main(void) { return decay_inputs; }\n')
    command = [*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-long-long", "-c"]
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    subprocess.run([*command, "main.c"], cwd=tmp_path, check=True)


def test_promoted_name_is_a_parameter() -> None:
    constant = "decay_parameter_" + RATE.replace(".", "_")
    assert re.search(rf"{constant} = 0, /\* {re.escape(RATE)}", text_of(decay()))
