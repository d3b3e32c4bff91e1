"""A package as a user material (UMAT, VUMAT): what a host gives and keeps, in tables and text."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingot.codegen.compiler import join_headers
from ingot.codegen.values import write_number
from ingot.errors import Problem, raise_if
from ingot.package.header import LAYOUTS
from ingot.package.metadata import Metadata, VariableInfo
from ingot.package.target import Target
from ingot.types import lag
from ingot.types.history import TIMES

__all__ = ["Interface", "find_interface", "list_pairs", "write_include", "write_umat"]

STRAIN, STRESS, TEMPERATURE = "strain", "stress", "temperature"
GRADIENT, KIRCHHOFF = "deformation_gradient", "kirchhoff_stress"
ENERGIES = ("SSE", "SPD", "SCD")
TURNS = {"Scalar": "stays", "SR2": "symmetric"}  # what DROT does to a state of each kind
KINDS = {STRAIN: "SR2", STRESS: "SR2", GRADIENT: "R2", KIRCHHOFF: "SR2"}
"""Of what a host gives and takes by name; all else that it knows are numbers."""
MAX_COLUMNS = 72  # of fixed form
MAX_FORTRAN_NAME = 57  # Fortran takes 63 letters, a line of fixed form so many beside a number


@dataclass(frozen=True, slots=True)
class State:
    """An output that STATEV keeps: where its numbers begin, counted from 0, and what they are at
    the start.
    """

    variable: VariableInfo
    output: int
    at: int
    initial: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Interface:
    """Where a package's inputs come from and its outputs go to, as a host's arrays.

    is_lagrangian: whether the host asks for the second Piola-Kirchhoff stress by Green's strain;
    is_autonomous: whether time enters by the length of the step alone;
    sources: the array of every input, and where in it
    """

    is_finite: bool
    is_lagrangian: bool
    is_autonomous: bool
    sources: tuple[tuple[str, int], ...]
    states: tuple[State, ...]
    fields: tuple[str, ...]

    @property
    def numbers(self) -> int:
        """How many numbers of STATEV are used."""
        return sum(s.variable.size for s in self.states)


def list_pairs(inputs: Collection[str], outputs: Collection[str]) -> list[tuple[str, str]]:
    """The derivatives that a host asks for, of a model with such inputs and outputs."""
    stress, strain = (KIRCHHOFF, GRADIENT) if GRADIENT in inputs else (STRESS, STRAIN)
    return [(stress, by) for by in (strain, TEMPERATURE) if stress in outputs and by in inputs]


def find_interface(
    meta: Metadata, guesses: Collection[str], target: Target, *, is_autonomous: bool
) -> Interface:
    """The interface of a package; what no host gives is refused.

    guesses: inputs that only solves start from; is_autonomous: as of the interface
    """
    problems: list[Problem] = []
    initial = dict(_read_initial(target.umat_initial, problems))
    outputs = {v.name: i for i, v in enumerate(meta.outputs)}
    is_finite = any(v.name == GRADIENT for v in meta.inputs)
    problems += _find_missing(meta, is_finite)
    problems += _find_unlike(meta, is_finite)
    problems += [
        _refuse(f"'{p.variable.name}' has a batch of its own, and a UMAT is called for one point",
                "give it one value")
        for p in (*meta.parameters, *meta.constants) if p.value.shape[:1] != (1,)
        and len(p.value.values) != p.variable.size
    ]  # fmt: skip
    hosts = _list_hosts(is_finite)
    states: dict[str, State] = {}
    fields: dict[str, int] = {}
    sources: list[tuple[str, int]] = []
    for v in meta.inputs:
        name, steps = lag(v.name)
        if (name, steps) in hosts:
            sources.append(hosts[name, steps])
        elif name in outputs and (steps == 1 or v.name in guesses):
            if name not in states:
                at = sum(s.variable.size for s in states.values())
                variable = meta.outputs[outputs[name]]
                values = _fit_initial(variable, initial.pop(name, None), problems)
                states[name] = State(variable, outputs[name], at, values)
            sources.append(("state", states[name].at))
        elif v.kind == "Scalar" and not v.sub_batch and steps < 2:
            place = fields.setdefault(name, len(fields))
            sources.append(("field_old" if steps else "field", place))
        else:
            problems.append(_refuse_input(v, steps))
    problems += [
        _refuse(f"--umat-initial {name}: no state of the model is called so",
                f"choose one of: {', '.join(states) or 'none, as there is no state'}")
        for name in initial
    ]  # fmt: skip
    raise_if(problems)
    is_lagrangian = is_finite and target.umat_host == "calculix"
    return Interface(
        is_finite, is_lagrangian, is_autonomous, tuple(sources), tuple(states.values()),
        tuple(fields),
    )  # fmt: skip


def _refuse(message: str, fix: str) -> Problem:
    return Problem("wrong-umat", message, None, fix)


def _refuse_input(v: VariableInfo, steps: int) -> Problem:
    if steps > 1:
        message = f"'{v.name}' is of {steps} steps before, and a UMAT keeps one"
        return _refuse(message, "leave out the predictor that reads it")
    if steps == 1:
        message = f"'{v.name}' is what no output of the model was, so that no STATEV holds it"
        return _refuse(message, f"let the model give '{lag(v.name)[0]}': additional_outputs")
    message = f"a host gives no '{v.name}', {_tell_kind(v)}"
    names = [n for n in (STRAIN, GRADIENT) if _is_kind(v, n)]
    fix = "give it a value in the file: a parameter, or what another model gives"
    if names:
        fix = f"name it by what it is: --rename-input {v.name}:{names[0]}"
    return _refuse(message, fix)


def _tell_kind(v: VariableInfo) -> str:
    return f"{v.kind} on axes of {v.sub_batch}" if v.sub_batch else v.kind


def _is_kind(v: VariableInfo, name: str) -> bool:
    """Whether a variable is what a host gives or takes by a name."""
    return v.kind == KINDS.get(name, "Scalar") and not v.sub_batch


def _find_missing(meta: Metadata, is_finite: bool) -> Iterator[Problem]:
    if not is_finite and all(v.name != STRAIN for v in meta.inputs):
        message = f"a UMAT gives '{STRAIN}' or '{GRADIENT}', and the model reads neither"
        yield _refuse(message, _propose("--rename-input", meta.inputs, (STRAIN, GRADIENT)))
    wanted = KIRCHHOFF if is_finite else STRESS
    if all(v.name != wanted for v in meta.outputs):
        message = f"a UMAT gives back '{wanted}', which the model does not give"
        yield _refuse(message, _propose("--rename-output", meta.outputs, (wanted,)))


def _propose(flag: str, known: Sequence[VariableInfo], names: Sequence[str]) -> str:
    """Which variables, of the kind that a host means by a name, may be renamed to it."""
    likely = [f"{v.name}:{n}" for n in names for v in known
              if not lag(v.name)[1] and _is_kind(v, n)]  # fmt: skip
    if likely:
        return f"rename what is meant: {flag} {' or '.join(likely[:4])}"
    kinds = " or ".join(dict.fromkeys(KINDS[n] for n in names))
    return f"choose a model that has one, of kind {kinds}"


def _find_unlike(meta: Metadata, is_finite: bool) -> Iterator[Problem]:
    """What is called as something that a host knows, and is of another kind."""
    known = {name for name, _ in _list_hosts(is_finite)}
    taken = {KIRCHHOFF if is_finite else STRESS, *ENERGIES}
    for flag, vs, names in (
        ("--rename-input", meta.inputs, known),
        ("--rename-output", meta.outputs, taken),
    ):
        for v in vs:
            name = lag(v.name)[0]
            if name in names and not _is_kind(v, name):
                kind = KINDS.get(name, "Scalar")
                told = f"'{v.name}' of a host is of kind {kind}, that of the model {_tell_kind(v)}"
                yield _refuse(told, f"call it otherwise: {flag} {v.name}:NEW")


def _list_hosts(is_finite: bool) -> dict[tuple[str, int], tuple[str, int]]:
    """What a host gives, by name and how many steps back."""
    own = (GRADIENT, "gradient") if is_finite else (STRAIN, "strain")
    named = [own, (TEMPERATURE, "temperature")]
    found = {(name, k): (word + "_old" * k, 0) for name, word in named for k in (0, 1)}
    found |= {(name, 0): ("time", 0) for name in TIMES}
    found |= {(name, 1): ("time_old", 0) for name in TIMES}
    found |= {(name, 1): ("energy_old", i) for i, name in enumerate(ENERGIES)}
    return found if is_finite else found | {(STRESS, 1): ("stress_old", 0)}


def _read_initial(
    asked: Sequence[str], problems: list[Problem]
) -> Iterator[tuple[str, tuple[float, ...]]]:
    for text in asked:
        name, mark, numbers = text.partition("=")
        try:
            yield name.strip(), tuple(float(x) for x in numbers.split())
        except ValueError:
            mark = ""
        if not mark:
            problems.append(_refuse(f"--umat-initial {text}", "write 'VAR=1 0 0', numbers alone"))


def _fit_initial(
    v: VariableInfo, values: tuple[float, ...] | None, problems: list[Problem]
) -> tuple[float, ...]:
    if values is not None and len(values) != v.size:
        message = f"--umat-initial {v.name}: {len(values)} numbers, and a {v.kind} has {v.size}"
        problems.append(_refuse(message, f"give {v.size}: {LAYOUTS[v.kind]}"))
    return values or (0.0,) * v.size


def write_umat(meta: Metadata, interface: Interface) -> str:
    """The C++ of the user material; it stands behind the C functions of the package."""
    assert meta.kernel is not None
    prefix = meta.kernel.prefix
    real = "double" if meta.dtype == "float64" else "float"
    outputs = [v.name for v in meta.outputs]
    blocks = [(b.output, b.input) for b in meta.derivatives]
    energies = [outputs.index(e) if e in outputs else -1 for e in ENERGIES]
    stress, strain = (KIRCHHOFF, GRADIENT) if interface.is_finite else (STRESS, STRAIN)
    heat = (stress, TEMPERATURE)
    counts = {
        "stress_at": outputs.index(stress), "tangent_at": blocks.index((stress, strain)),
        "heat_at": blocks.index(heat) if heat in blocks else -1,
        "states": len(interface.states), "numbers": interface.numbers,
        "fields": len(interface.fields), "properties": _count_properties(meta),
    }  # fmt: skip
    kept = (
        f"{{{s.output}, {s.at}, {s.variable.size}, {TURNS.get(s.variable.kind, 'cannot')}}}"
        for s in interface.states
    )
    begin = (write_number(x) for s in interface.states for x in s.initial)
    sources = (f"{{of_{word}, {at}}}" for word, at in interface.sources)
    rows = [
        "namespace ingot {", "namespace {", "namespace umat {",
        "enum Source { of_strain, of_strain_old, of_stress_old, of_gradient, of_gradient_old,",
        "  of_time, of_time_old, of_temperature, of_temperature_old, of_field, of_field_old,",
        "  of_energy_old, of_state };",
        "enum Turns { stays, symmetric, cannot };",
        "struct From { Source source; int at; };",
        "struct Kept { int output, at, size; Turns turns; };",
        f'constexpr char name[] = "{meta.name}";',
        f"constexpr bool is_finite = {str(interface.is_finite).lower()};",
        f"constexpr bool is_lagrangian = {str(interface.is_lagrangian).lower()};",
        f"constexpr bool is_autonomous = {str(interface.is_autonomous).lower()};",
        f"constexpr int {', '.join(f'{k} = {v}' for k, v in counts.items())};",
        f"constexpr int energy_at[] = {{{', '.join(map(str, energies))}}};",
        f"constexpr From from[] = {{{', '.join(sources) or '{}'}}};",
        f"constexpr Kept kept[] = {{{', '.join(kept) or '{}'}}};",
        f"constexpr double initial[] = {{{', '.join(begin) or '{}'}}};",
        "}", "}", "}",
        f"#define INGOT_UMAT_SLOPES {'jacobian' if meta.derivatives else 'forward'}",
        join_headers(("umat.h",)),
        f"INGOT_EXPORT void {prefix}_umat(INGOT_UMAT_ARGUMENTS) {{ INGOT_UMAT_CALL; }}",
        *(
            f"INGOT_EXPORT void {prefix}_vumat_{t}(INGOT_VUMAT_ARGUMENTS({t}))"
            " { INGOT_VUMAT_CALL; }"
            for t in ("double", "float")
        ),
        "// weak: a program may have several packages, and an `umat_` of its own that chooses",
        "INGOT_EXPORT __attribute__((weak)) void umat_(INGOT_UMAT_ARGUMENTS) { INGOT_UMAT_CALL; }",
        "INGOT_EXPORT __attribute__((weak)) void"
        f" vumat_(INGOT_VUMAT_ARGUMENTS({real})) {{ INGOT_VUMAT_CALL; }}",
        "",
    ]  # fmt: skip
    return "\n".join(rows)


def _count_properties(meta: Metadata) -> int:
    return sum(p.variable.size for p in meta.parameters)


def write_include(meta: Metadata, interface: Interface) -> str:
    """The text of `<name>-umat.inc`: comments and constants, for either form of Fortran."""
    name, numbers, properties = meta.name, interface.numbers, _count_properties(meta)
    strains = 0 if interface.is_finite else 6 if meta.dtype == "float64" else 12
    rows = [
        f"{name} as a user material, compiled by Ingot.",
        "",
        f"UMAT: {_tell_measures(interface)}; VUMAT: {meta.dtype} arrays.",
        f"*DEPVAR: {numbers}; plane stress (NDI = 2): {numbers + 1}; VUMAT: {numbers + strains}",
        f"*USER MATERIAL, CONSTANTS={properties}",
        "",
        *_list_places("STATEV", [(s.variable, s.initial) for s in interface.states]),
        f"STATEV({numbers + 1}): strain of the thickness (plane stress; finite strain: F33 - 1)",
    ]
    if strains:
        span = f"{numbers + 1}:{numbers + 6}"
        rows.append(f"STATEV({span}): strain, SR2 (VUMAT, which is given its increments)")
    if strains > 6:
        rows.append(f"STATEV({numbers + 7}:{numbers + 12}): what it loses to rounding (VUMAT)")
    rows += [
        "A state that is zero at total time zero begins with the numbers after '='.",
        *_tell_time(meta, interface),
        "",
        *_list_places("PROPS", [(p.variable, p.value.values) for p in meta.parameters]),
        *(f"PREDEF({i}): {field}" for i, field in enumerate(interface.fields, 1)),
    ]
    kinds = dict.fromkeys(s.variable.kind for s in interface.states)
    rows += ["", *(f"{kind}: {LAYOUTS[kind]}" for kind in kinds)]
    assert meta.kernel is not None
    places = {"nstatv": numbers, "nprops": properties}
    places |= {f"sdv_{s.variable.name}": s.at + 1 for s in interface.states}
    words = _name_constants([f"{meta.kernel.short_prefix}_{word}" for word in places])
    constants = dict(zip(words, places.values(), strict=True))
    comments = [piece for row in rows for piece in _wrap(row)]
    return "\n".join([
        *comments, *(row for k, v in constants.items() for row in _declare(k, v)), "",
    ])  # fmt: skip


def _tell_measures(interface: Interface) -> str:
    if interface.is_lagrangian:
        return "finite strain, by STRAN and DSTRAN, Green's as CalculiX gives it"
    return "finite strain, by DFGRD1" if interface.is_finite else "small strain"


def _tell_time(meta: Metadata, interface: Interface) -> Iterator[str]:
    """Whether long times round steps away."""
    ends = {word for word, _ in interface.sources} & {"time", "time_old"}
    if interface.is_autonomous and ends:
        yield "Of time the model reads the length of a step alone."
    elif len(ends) == 2:
        yield f"The model reads total time, in {meta.dtype}: a step that is rounded away in it, by"
        yield "a thousandth of itself or more, ends the job."


def _list_places(
    array: str, listed: Sequence[tuple[VariableInfo, Sequence[float]]]
) -> Iterator[str]:
    at = 1
    for v, values in listed:
        place = f"{at}:{at + v.size - 1}" if v.size > 1 else f"{at}"
        numbers = " ".join(f"{x:g}" for x in values[:9]) if any(values) else "0"
        yield f"{array}({place}): {v.name}, {v.kind} = {numbers}"
        at += v.size


def _name_constants(wanted: Iterable[str]) -> list[str]:
    """Names that Fortran accepts and tells apart, in upper or lower case."""
    names: dict[str, str] = {}
    for text in wanted:
        word = re.sub(r"\W", "_", text, flags=re.ASCII)[:MAX_FORTRAN_NAME]
        name, count = word, 2
        while name.lower() in names:
            end = f"_{count}"
            name, count = word[: MAX_FORTRAN_NAME - len(end)] + end, count + 1
        names[name.lower()] = name
    return [*names.values()]


def _declare(name: str, number: int) -> list[str]:
    """A constant; where it is too long, on two lines that continue in either form."""
    head, rest = "      integer, parameter ::", f"{name} = {number}"
    row = f"{head} {rest}"
    return [row] if len(row) <= MAX_COLUMNS else [f"{head:<{MAX_COLUMNS}}&", f"     & {rest}"]


def _wrap(row: str, width: int = 70) -> Iterator[str]:
    """Comments that fit the lines of fixed form."""
    line = "!"
    for word in row.split():
        if len(line) + 1 + len(word) > width:
            yield line
            line = "!  "
        line += f" {word}"
    yield line
