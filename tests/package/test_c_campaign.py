"""Random calls of the C functions under sanitizers, and eight threads on one library."""

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ingot.options import Newton, fits, knobs_of
from tests.package.c_calls import ALIAS, NULL, OWN, SHIFTED, CCall, CProgram, CResult, Place
from tests.package.test_header import WRONG, check, rules_of
from tests.packages import Made, decay, diffusion, elastic, inputs_of, plastic, single, trained

SANITIZED = (
    "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer",
)  # fmt: skip
COUNTS = (0, 1, 1, 2, 3, 5, 5, 5, 7, 8, 9, 17, 63, 64, 65, 67)
NO_COUNTS = (-1, -5, -(2**63), 2**62, 2**63 - 1)
BAD_RULES = {"double": (-1.0, np.nan, np.inf, -np.inf), "int32_t": (-1.0, -(2.0**31))}
Makes = Callable[[], Made]
Sanitized = Callable[[Makes], CProgram]


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Sanitized:
    """Programs of packages compiled from their sources, with all that sanitizers watch."""

    @cache
    def program(package: Makes) -> CProgram:
        return CProgram(package(), tmp_path_factory.mktemp("sanitized"), *SANITIZED)

    return program


def draw(rng: Random, program: CProgram) -> CCall:
    """A call that is lawful, or has one or two faults."""
    meta, one = program.meta, program.one
    stored = [len(p.value.values) // p.variable.size for p in meta.constants]
    points = max(stored) if stored and rng.random() < 0.7 else rng.choice(COUNTS)
    faults = [rng.choice(FAULTS) for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]
    if "points" in faults:
        points = rng.choice(NO_COUNTS)
    call = CCall(points, [], [Place()] * len(program.sizes), jacobian=rng.random() < 0.5)
    call.jacobian = call.jacobian and bool(meta.derivatives)
    call.vjp = meta.adjoints and rng.random() < 0.7
    if meta.adjoints:
        numbers = np.random.default_rng(rng.randrange(2**31))
        heard = numbers.random(call.room) < 0.8
        call.against = [
            (numbers.standard_normal((call.room, program.sizes[i])) * heard[:, None]).reshape(-1)
            for i in program.cotangents
        ]
    inputs = inputs_of(one, call.room, seed=rng.randrange(2**31))
    call.values = [inputs[v.name].numpy().reshape(-1) for v in meta.inputs]
    call.status = rng.choice((0, 1))
    if rng.random() < 0.6:
        call.parameters = [_parameter(rng, program, call, i) for i in range(len(meta.parameters))]
    if rng.random() < 0.5 and meta.solvers:
        call.rules = [_rule(rng, rule) for rule in rules_of(one)]
    if rng.random() < 0.4:
        _alias(rng, program, call, lawful=True)
    for fault in faults:
        _break(rng, program, call, fault)
    return call


FAULTS = ("points", "null", "shift", "overlap", "arrays", "status", "count", "rules")


def _parameter(rng: Random, program: CProgram, call: CCall, i: int) -> tuple[int, int, np.ndarray]:
    p = program.meta.parameters[i]
    count = rng.choice((1, call.room)) if call.room else 1
    base = np.asarray(p.value.values[: p.variable.size])
    values = np.tile(base, count) * np.array(
        [rng.uniform(0.9, 1.1) for _ in range(count * base.size)]
    )
    return rng.choice((0, 1, 1)), count, values


def _rule(rng: Random, rule: dict[str, float]) -> dict[str, float]:
    return rule | {
        "abs_tol": rng.choice((rule["abs_tol"], 0.0, 1e-6, 1e-2)),
        "rel_tol": rng.choice((rule["rel_tol"], 0.0, 1e-4)),
        "max_its": rng.choice((1, 2, 4, 25)),
        "stop": rng.choice((0, 0, 1)),
        "linesearch": rng.choice((0, 1, 2)),
        "max_linesearch_iterations": rng.choice((0, 1, 5)),
        "linesearch_cutback": rng.choice((1.5, 2.0)),
    }


def _alias(rng: Random, program: CProgram, call: CCall, *, lawful: bool) -> None:
    """Let an array be another one that stands before it and has memory of its own."""
    inputs, sizes = len(program.meta.inputs), program.sizes
    here = rng.randrange(1, len(sizes))
    there = rng.randrange(min(here, inputs) if lawful else here)
    if lawful and here >= program.cotangents.stop and program.cotangents and rng.random() < 0.5:
        there = rng.choice(program.cotangents)
    own = call.arrays[here].mode == call.arrays[there].mode == OWN
    if not own or any(p.mode == ALIAS and p.a == here for p in call.arrays):
        return
    if here in program.cotangents or (there in program.cotangents and not call.vjp):
        return
    if here < inputs:
        if sizes[here] <= sizes[there]:
            call.arrays[here] = Place(ALIAS, there)
            call.values[here] = call.values[there][: call.room * sizes[here]]
        return
    if lawful and sizes[here] != sizes[there]:
        return
    shift = 0 if lawful or call.room * sizes[there] < 2 else rng.choice((0, 1))
    call.arrays[here] = Place(ALIAS, there, shift)


def _break(rng: Random, program: CProgram, call: CCall, fault: str) -> None:
    """Put a fault into a call; some do no harm there."""
    place = rng.randrange(len(program.sizes))
    used = {p.a for p in call.arrays if p.mode == ALIAS}
    if fault in ("null", "shift") and place not in used:
        shift = rng.randrange(1, 8)
        call.arrays[place] = Place(NULL) if fault == "null" else Place(SHIFTED, shift)
    elif fault == "overlap":
        _alias(rng, program, call, lawful=False)
    elif fault == "arrays":
        call.no_arrays |= rng.choice((1, 2, 4, 8))
    elif fault == "status":
        call.status = 2
    elif fault == "count" and call.parameters:
        i = rng.randrange(len(call.parameters))
        mode, count, values = call.parameters[i]
        wrong = (2, count, values) if rng.random() < 0.3 else (mode, rng.choice((-1, 0, 4)), values)
        call.parameters[i] = wrong
    elif fault == "rules" and call.rules:
        knob = rng.choice(knobs_of(Newton))
        rng.choice(call.rules)[knob.name] = rng.choice(BAD_RULES[knob.c_type])


def errors_of(program: CProgram, call: CCall) -> set[str]:
    """The errors that the header promises for a call."""
    meta, wide, found = program.meta, program.real.itemsize, set[str]()
    if not 0 <= call.points <= 100_000:
        return {"points"}
    modes = [m for m, _, _ in call.parameters or [(0, 0, None)] * len(meta.parameters)]
    for p, mode in (*zip(meta.parameters, modes, strict=True), *((c, 0) for c in meta.constants)):
        stored = len(p.value.values) // p.variable.size
        if not mode and stored not in (1, call.points):
            found.add("points")
    for mode, count, _ in call.parameters or ():
        found |= {"count"} if mode and count not in (1, call.points) else set()
        found |= {"alignment"} if mode == 2 and 4 % wide else set()
    for rule in call.rules or ():
        for knob in knobs_of(Newton):
            value = rule[knob.name]
            lawful = 0 <= value < len(knob.choices) if knob.choices else fits(
                int(value) if knob.c_type == "int32_t" else value, knob.kind
            )  # fmt: skip
            found |= set() if lawful else {"rules"}
    if call.points == 0:
        return found
    active = program.active(call)
    groups = (1, 2, 4, 8) if call.vjp else (1, 2, 4) if call.jacobian else (1, 2)
    found |= {"pointer"} if any(call.no_arrays & bit for bit in groups) else set()
    for i in active:
        place = call.arrays[i]
        found |= {"pointer"} if place.mode == NULL and i not in program.cotangents else set()
        found |= {"alignment"} if place.mode == SHIFTED and place.a % wide else set()
    found |= {"alignment"} if call.status == 2 else set()
    return found | ({"overlap"} if _overlaps(program, call, active) else set())


def _overlaps(program: CProgram, call: CCall, active: list[int]) -> bool:
    reads = {*range(len(program.meta.inputs)), *program.cotangents}
    rules = call.rules or rules_of(program.one)
    together = any(rule["stop"] for rule in rules)
    spans = {}
    for i in active:
        place = call.arrays[i]
        if place.mode != NULL:
            memory, begin = (place.a, place.b) if place.mode == ALIAS else (i, 0)
            spans[i] = memory, begin, begin + call.points * program.sizes[i]
    for o in spans:
        for i in spans:
            if o in reads or i == o or spans[o][0] != spans[i][0]:
                continue
            in_place = i in reads and spans[i] == spans[o] and not together
            if not in_place and spans[o][1] < spans[i][2] and spans[i][1] < spans[o][2]:
                return True
    return False


def judge(program: CProgram, call: CCall, result: CResult) -> str:
    """Check one call against the header's promises and Python's numbers; what it was."""
    errors = errors_of(program, call)
    if errors:
        assert result.returned in {WRONG[e] for e in errors}, (call, errors)
        for i, x in enumerate(result.arrays):
            if i < len(call.values):
                np.testing.assert_array_equal(x, call.values[i])
            elif i in program.cotangents:
                np.testing.assert_array_equal(x, program.against(call, i))
            else:
                assert set(x.view(np.uint8)) <= {0x5A}
        return "refused"
    assert result.returned >= 0, call
    if call.points:
        check(program, call, result)
    return "lawful"


def campaign(program: CProgram, seed: int, count: int) -> dict[str, int]:
    """How many of so many random calls were lawful and refused."""
    rng = Random(seed)
    calls = [draw(rng, program) for _ in range(count)]
    found = [judge(program, c, r) for c, r in zip(calls, program(calls), strict=True)]
    return {word: found.count(word) for word in ("lawful", "refused")}


@pytest.mark.parametrize("package", [decay, elastic, trained])
def test_random_c_calls_are_right_or_refused(package: Makes, sanitized: Sanitized) -> None:
    found = campaign(sanitized(package), 1, 60)
    assert min(found.values()) >= 5


@pytest.mark.exhaustive
@pytest.mark.parametrize("package", [decay, elastic, plastic, diffusion, single, trained])
def test_a_thousand_random_c_calls_are_right_or_refused(
    package: Makes, sanitized: Sanitized
) -> None:
    found = campaign(sanitized(package), 2, 1000)
    assert min(found.values()) >= 50


THREADS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "decay.h"
enum { threads = 8, points = 67, rounds = 20 };
static double given[decay_inputs][points], first[decay_outputs + decay_blocks][points];
static int call(double made[][points], decay_status* status) {
  const double* inputs[decay_inputs];
  double* outputs[decay_outputs + decay_blocks];
  for (int i = 0; i < decay_inputs; ++i) inputs[i] = given[i];
  for (int i = 0; i < decay_outputs + decay_blocks; ++i) outputs[i] = made[i];
  return decay_jacobian(points, inputs, NULL, NULL, outputs, outputs + decay_outputs, status) != 0;
}
static void* work(void* wrong) {
  double made[decay_outputs + decay_blocks][points];
  decay_status status[decay_solves * points];
  for (int i = 0; i < rounds; ++i)
    if (call(made, status) || memcmp(made, first, sizeof first)) *(int*)wrong = 1;
  return NULL;
}
int main(void) {
  pthread_t team[threads];
  int wrong[threads] = {0};
  for (int i = 0; i < decay_inputs; ++i)
    for (int k = 0; k < points; ++k) if (scanf("%lf", &given[i][k]) != 1) return 3;
  if (call(first, NULL)) return 4;
  for (int i = 0; i < threads; ++i) if (pthread_create(&team[i], NULL, work, &wrong[i])) return 5;
  for (int i = 0; i < threads; ++i) pthread_join(team[i], NULL);
  for (int i = 0; i < threads; ++i) if (wrong[i]) return 6;
  return 0;
}
"""


def test_eight_threads_share_a_library(tmp_path: Path) -> None:
    one, flags = decay(), ["-g", "-O1", "-fsanitize=thread"]
    kernel = one.package.metadata.kernel
    assert kernel is not None
    (tmp_path / "main.c").write_text(THREADS)
    main = ["gcc", "-std=c99", "-Wall", *flags, "-D_GNU_SOURCE", f"-I{one.folder}", "-c", "main.c"]
    subprocess.run(main, cwd=tmp_path, check=True)
    source = str(one.folder / kernel.source)
    build = [
        "g++",
        "-std=c++17",
        "-Wno-psabi",
        "-fPIC",
        "-shared",
        *flags,
        source,
        "-o",
        "decay.so",
    ]
    subprocess.run(build, cwd=tmp_path, check=True)
    link = ["g++", *flags, "main.o", "./decay.so", "-lpthread", "-o", "main"]
    subprocess.run(link, cwd=tmp_path, check=True)
    inputs = inputs_of(one, 67)
    text = " ".join(repr(x) for v in one.package.metadata.inputs for x in inputs[v.name].tolist())
    # Without random addresses: older sanitizers find no room beside them.
    done = subprocess.run(
        ["setarch", "-R", "./main"], cwd=tmp_path, input=text, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING: ThreadSanitizer" not in done.stderr
