"""The C header of a kernel package."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ingot.options import Knob, Newton, bounds, knobs_of, meta_of
from ingot.package.metadata import Metadata, ParameterInfo, VariableInfo
from ingot.types import lag

__all__ = ["ERRORS", "LAYOUTS", "Notes", "count_block_sizes", "write_c_name", "write_header"]

LAYOUTS = {
    "Scalar": "one number",
    "Vec": "1, 2, 3",
    "SR2": "a symmetric tensor in Mandel order: 11, 22, 33, then sqrt(2) times 23, 13, 12; the"
    " entries are those of the tensor (half the engineering shear strains)",
    "WR2": "a skew tensor W by its axial vector w, W v = w x v: W32, W13, W21",
    "R2": "a tensor, row index first: 11, 12, 13, 21, 22, 23, 31, 32, 33",
    "MRP": "a rotation by modified Rodrigues parameters, axis times tan(angle / 4): 1, 2, 3",
    "SSR4": "6 x 6 numbers, row index first, both sides in the Mandel order of SR2: C : e is the"
    " product of this matrix and the 6 numbers of e (so 1112 carries sqrt(2), and 2323 carries 2)",
    "MillerIndex": "h, k, l",
    "Quaternion": "w, x, y, z",
    "Flag": "one number, 0 or 1",
}
"""How the numbers of a value of each kind lie."""

ERRORS = {
    "points": "points is negative or too large, or not the number that a stored parameter has",
    "pointer": "an array that is read or written is NULL",
    "count": "a parameter is given for neither 1 nor all points",
    "alignment": "an array does not lie where its type must",
    "overlap": "an array that is written meets another one (see aliasing in the header)",
    "rules": "a rule of a solve is not finite, or out of its range",
    "memory": "memory ran out; outputs and status hold nothing of use",
    "range": "a parameter is not finite, or out of its range",
}
"""Why a call is refused, from -1 down (`Refusal` of steps.h)."""


def write_c_name(name: str) -> str:
    """A name that C accepts."""
    kept = re.sub(r"[^A-Za-z0-9]", "_", name)
    return kept if kept[:1].isalpha() else f"model_{kept}"


@dataclass(frozen=True, slots=True)
class Notes:
    """What only the compiler knows of inputs: which are first guesses, and names before renaming.

    guesses: inputs that no output depends on but through the start of a solve
    inputs, outputs: the names of the file, by those that the package shows instead
    """

    guesses: Collection[str] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)


class _Names:
    """The constants of a header, each of them once."""

    def __init__(self, meta: Metadata) -> None:
        assert meta.kernel is not None
        self.prefix = meta.kernel.prefix
        self.short = meta.kernel.short_prefix
        self.used: set[str] = set()
        self.inputs = self._group("in", [v.name for v in meta.inputs])
        self.parameters = self._group("parameter", [p.variable.name for p in meta.parameters])
        self.outputs = self._group("out", [v.name for v in meta.outputs])
        pairs = [f"{b.output}_by_{b.input}" for b in meta.derivatives]
        self.blocks = self._group("block", pairs)
        self.solves = self._group("solve", [s.name for s in meta.solvers])

    def _group(self, group: str, names: Iterable[str]) -> list[str]:
        return [self._constant(f"{self.short}_{group}_{_write_word(name)}") for name in names]

    def _constant(self, wanted: str) -> str:
        found, count = wanted, 2
        while found in self.used:
            found, count = f"{wanted}_{count}", count + 1
        self.used.add(found)
        return found


def _write_word(name: str) -> str:
    """A variable's name as part of a constant: `x~1` is x_old."""
    for mark, back in re.findall(r"(~(\d+))", name):
        name = name.replace(mark, "_old" if back == "1" else f"_old{back}")
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def write_header(meta: Metadata, notes: Notes = Notes()) -> str:  # noqa: B008 it is frozen
    """The text of `<name>.h`."""
    if meta.cuts:
        told = f"'{meta.name}' sums over points, and C functions compute each point by itself"
        return f'/* There is nothing to call here. */\n#error "{told}: call it from Python"\n'
    names, real = _Names(meta), "double" if meta.dtype == "float64" else "float"
    name = names.short
    declared = [*meta.entries, "default_rules", "message"]
    if meta.kernel is not None and meta.kernel.umat is not None:
        declared.append("umat")
    sections = [
        _remark(*_write_preamble(meta, name)),
        _write_guard(names, declared),
        _write_layouts(meta),
        _write_list("input", name, names.inputs,
                    [_write_input(v, meta, names, notes) for v in meta.inputs]),
        _write_list("parameter", name, names.parameters,
                    [_write_parameter(p) for p in meta.parameters]),
        _write_list("output", name, names.outputs, [_write_variable(v) for v in meta.outputs]),
        _write_list("block", name, names.blocks, _write_blocks(meta)),
        _write_list("solve", name, names.solves,
                    [f"{s.name}, for {', '.join(s.unknowns)}" for s in meta.solvers]),
        _write_adjoints(meta, name),
        _write_sizes(meta, name),
        _write_errors(name),
        _write_types(meta, name, real),
        _write_rules(name),
        _write_prototypes(meta, name, real),
        ["#ifdef __cplusplus", "}", "#endif", f"#endif /* {_name_guard(names)} */", ""],
    ]  # fmt: skip
    return "\n".join("\n".join(rows) + "\n" for rows in sections if rows).rstrip("\n") + "\n"


def _remark(*rows: str) -> list[str]:
    """A comment of such lines, which no name can end."""
    body = [re.sub(r"[*?](?=[/?])|/(?=\*)", r"\g<0> ", row) for row in rows]
    return [f"/* {body[0]}", *(f"   {row}".rstrip() for row in body[1:-1]),
            f"   {body[-1]} */"] if body[1:] else [f"/* {body[0]} */"]  # fmt: skip


def _write_preamble(meta: Metadata, name: str) -> list[str]:
    source = f" from {meta.origin.file}" if meta.origin.file else ""
    return [
        f"{meta.name}, compiled by Ingot{source}.",
        "",
        "Arrays: point-major and without gaps, points x size numbers each. Every call takes",
        f"arrays of pointers to them, in the order of the constants {name}_in_..., {name}_out_...",
        "",
        f"Returns: how many points failed, or a negative {name}_error_... where the call was",
        f"refused; then nothing was written, {name}_error_memory excepted.",
        "",
        "Failed points: one solve at least did not converge. All outputs and blocks of such a",
        "point are NaN; no other point is touched. An output that takes the place of its old",
        "value is lost with it: keep a copy if the step is to be cut.",
        *(
            ["Adjoints are NaN as well, but zero where all cotangents of the point are."]
            if meta.adjoints
            else []
        ),
        "",
        "Aliasing: inputs are never written. An output may be the very array of an input of the",
        "same size (state that is updated in place), unless a solve has the rule stop = batch;",
        f"otherwise arrays that are written meet no other: {name}_error_overlap.",
        "",
        "NULL: parameters and rules, for what the source file says; the data of one parameter, for",
        "its value there; status, if nobody asks. With 0 points all arrays may be. Nothing else.",
        "",
        "Threads: calls share nothing and may run at the same time, on arrays of their own.",
    ]


def _name_guard(names: _Names) -> str:
    return f"INGOT_{names.prefix}_H"


def _write_guard(names: _Names, declared: Sequence[str]) -> list[str]:
    name, guard = names.short, _name_guard(names)
    return [
        f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", "",
        f"#ifdef INGOT_USES_{name}",
        f'#error "another package has the names {name}_...: compile one with --c-prefix"',
        "#endif", f"#define INGOT_USES_{name}", "",
        *_remark(
            "The names in the library tell its content as well: a program linked with another",
            "package of this name, or with one that was compiled anew, does not run.",
        ),
        *(f"#define {name}_{x} {names.prefix}_{x}" for x in declared), "",
        "#ifdef __cplusplus", 'extern "C" {', "#endif",
    ]  # fmt: skip


def _write_layouts(meta: Metadata) -> list[str]:
    shown = (*meta.inputs, *(p.variable for p in meta.parameters), *meta.outputs)
    kinds = dict.fromkeys(v.kind for v in shown)
    rows = [f"{kind}: {LAYOUTS[kind]}" for kind in kinds]
    if any(v.sub_batch for v in shown):
        rows.append(
            "on (n, ...): so many values a point, last index fastest, each as above; the numbers"
            " are compiled in, for others compile again with --example-batch-shape 'NAME=(; n)'"
        )
    return _remark("The numbers of one value.", *rows)


def _write_variable(v: VariableInfo) -> str:
    on = f" on ({', '.join(map(str, v.sub_batch))})" if v.sub_batch else ""
    return f"{v.name}: {v.kind}{on}, {_write_numbers(v.size)}"


def _write_parameter(p: ParameterInfo) -> str:
    ranged = f"; finite, {bounds(p.range)}" if p.range is not None else ""
    return f"{_write_variable(p.variable)}{ranged}"


def _write_numbers(size: int) -> str:
    return f"{size} number{'' if size == 1 else 's'}"


def _write_input(v: VariableInfo, meta: Metadata, names: _Names, notes: Notes) -> str:
    """An input, and where its values come from, from one step to the next."""
    inputs = {
        notes.inputs.get(x.name, x.name): c for x, c in zip(meta.inputs, names.inputs, strict=True)
    }
    outputs = {
        notes.outputs.get(x.name, x.name): c
        for x, c in zip(meta.outputs, names.outputs, strict=True)
    }
    base, back = lag(notes.inputs.get(v.name, v.name))
    said = _write_variable(v)
    if back:
        before = base if back == 1 else f"{base}~{back - 1}"
        feeds = outputs.get(before) or inputs.get(before)
        said += f"; give it {feeds} of the step before" if feeds else (
            f"; {base} of {back} step{'s' * (back > 1)} before, which no output is"
        )  # fmt: skip
    if v.name in notes.guesses:
        said += "; only where a solve starts: results depend on it no further than the tolerances"
    return said


def _write_blocks(meta: Metadata) -> list[str]:
    known = {v.name: v for v in meta.inputs} | {
        p.variable.name: p.variable for p in meta.parameters
    }
    outs = {v.name: v for v in meta.outputs}
    rows = []
    for b in meta.derivatives:
        y, x = outs[b.output], known[b.input]
        same = "; the same at all points" if b.batch_independent else ""
        rows.append(f"d {y.name} / d {x.name}, {_write_shape(y, x)} numbers{same}")
    return rows


def _write_shape(y: VariableInfo, x: VariableInfo) -> str:
    """The extents of a block, in their order; a value that has no axis is 1."""
    axes = [*y.sub_batch, *x.sub_batch]
    inner = [math.prod(y.base), math.prod(x.base)]
    return " x ".join(map(str, [*axes, *inner]))


def _write_list(what: str, name: str, constants: list[str], said: list[str]) -> list[str]:
    plural = f"{what}s"
    title = {
        "input": "Inputs.",
        "parameter": "Promoted parameters.",
        "output": "Outputs.",
        "block": "Derivative blocks: row-major, the output's index before the input's; both in the"
        " layout of their kinds.",
        "solve": "Solves: the order of rules, and the outer one of status.",
    }[what]
    if not constants:
        return [f"enum {{ {name}_{plural} = 0 }};"]
    rows = [
        f"  {constant} = {i}, {_remark(text)[0]}"
        for i, (constant, text) in enumerate(zip(constants, said, strict=True))
    ]
    return [*_remark(title), "enum {", *rows, f"  {name}_{plural} = {len(constants)}", "};"]


def _write_adjoints(meta: Metadata, name: str) -> list[str]:
    if not meta.adjoints:
        return []
    count = len(meta.inputs) + len(meta.parameters)
    return [
        *_remark(f"Adjoints: those of the inputs, then those of the parameters, which begin at"
                  f" {name}_inputs.", "All have points x size numbers: the gradient by a parameter"
                  " with one value for all points", "is the sum of its adjoints over them."),
        f"enum {{ {name}_adjoints = {count} }};",
    ]  # fmt: skip


def _write_sizes(meta: Metadata, name: str) -> list[str]:
    groups = {
        "input": [v.size for v in meta.inputs],
        "parameter": [p.variable.size for p in meta.parameters],
        "output": [v.size for v in meta.outputs],
        "block": count_block_sizes(meta),
    }
    if meta.adjoints:
        groups["adjoint"] = [*groups["input"], *groups["parameter"]]
    return [
        *_remark("Numbers a point, in order: the initialiser of an array."),
        *(
            f"#define {name}_{group}_sizes {{{', '.join(map(str, sizes)) or '0'}}}"
            for group, sizes in groups.items()
        ),
    ]


def count_block_sizes(meta: Metadata) -> list[int]:
    """How many numbers each derivative block has at a point."""
    sizes = {v.name: v.size for v in (*meta.inputs, *(p.variable for p in meta.parameters))}
    outs = {v.name: v.size for v in meta.outputs}
    return [outs[b.output] * sizes[b.input] for b in meta.derivatives]


def _write_errors(name: str) -> list[str]:
    rows = [f"  {name}_error_{word} = {-i}" for i, word in enumerate(ERRORS, 1)]
    said = [f" /* {text} */" for text in ERRORS.values()]
    commas = [","] * (len(rows) - 1) + [""]
    return ["enum {", *(a + b + c for a, b, c in zip(rows, commas, said, strict=True)), "};"]


def _write_types(meta: Metadata, name: str, real: str) -> list[str]:
    return [
        *_remark("A parameter: count is 1, for one value at all points, or the number of points."),
        f"typedef struct {{ const {real}* data; int64_t count; }} {name}_values;", "",
        *_remark(
            "What became of a point in a solve. reason: 0 converged, 1 out of steps, 2 not finite;",
            "iterations: updates; residual: the last; pivoted: updates that needed pivoting.",
        ),
        f"typedef struct {{ int8_t reason; int32_t iterations; {real} residual; int32_t pivoted; }}"
        f" {name}_status;",
    ]  # fmt: skip


def _write_rules(name: str) -> list[str]:
    rows: list[str] = []
    words: list[str] = []
    for knob in knobs_of(Newton):
        rows += [f"  {knob.c_type} {knob.name}; /* {knob.sentence}; {_write_range(knob, name)} */"]
        words += [f"{name}_{knob.name}_{word} = {i}" for i, word in enumerate(knob.choices)]
    return [
        *_remark("When a solve stops, and how far it steps. Every number is finite."),
        "typedef struct {", *rows, f"}} {name}_rules;",
        "enum {", ",\n".join(f"  {word}" for word in words), "};",
    ]  # fmt: skip


def _write_range(knob: Knob, name: str) -> str:
    """What C may give for a rule, as the header says it."""
    if knob.choices:
        return " or ".join(f"{name}_{knob.name}_{word}" for word in knob.choices)
    meta = meta_of(knob.kind)
    bounds = ((">", meta.gt), (">=", meta.ge), ("<", meta.lt))
    return ", ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)


def _write_prototypes(meta: Metadata, name: str, real: str) -> list[str]:
    rows = [
        *_remark(
            "One step of all points. parameters: as many as there are, or NULL; rules: one for",
            "each solve, or NULL; status: solves x points, or NULL.",
        ),
        f"int64_t {name}_forward(int64_t points, const {real}* const* inputs,",
        f"    const {name}_values* parameters, const {name}_rules* rules, {real}* const* outputs,",
        f"    {name}_status* status);", "",
    ]  # fmt: skip
    if meta.derivatives:
        rows += [
            *_remark("The same, and the derivative blocks."),
            f"int64_t {name}_jacobian(int64_t points, const {real}* const* inputs,",
            f"    const {name}_values* parameters, const {name}_rules* rules,",
            f"    {real}* const* outputs, {real}* const* blocks, {name}_status* status);", "",
        ]  # fmt: skip
    if meta.adjoints:
        rows += [
            *_remark(
                "The same, and adjoints: the gradient of the sum of outputs times cotangents, at",
                "every point. cotangents: as large as the outputs; NULL for one that is zero.",
            ),
            f"int64_t {name}_vjp(int64_t points, const {real}* const* inputs,",
            f"    const {name}_values* parameters, const {name}_rules* rules,",
            f"    const {real}* const* cotangents, {real}* const* outputs,",
            f"    {real}* const* adjoints, {name}_status* status);", "",
        ]  # fmt: skip
    if meta.kernel is not None and meta.kernel.umat is not None:
        rows += [
            *_remark(
                "The user material under a name of its own: for an umat_ that chooses by cmname.",
                f"{meta.kernel.umat} tells what statev and props hold.",
            ),
            f"void {name}_umat(double* stress, double* statev, double* ddsdde, double* sse,",
            "    double* spd, double* scd, double* rpl, double* ddsddt, double* drplde,",
            "    double* drpldt, const double* stran, const double* dstran, const double* time,",
            "    const double* dtime, const double* temp, const double* dtemp,",
            "    const double* predef, const double* dpred, const char* cmname, const int* ndi,",
            "    const int* nshr, const int* ntens, const int* nstatv, const double* props,",
            "    const int* nprops, const double* coords, const double* drot, double* pnewdt,",
            "    const double* celent, const double* dfgrd0, const double* dfgrd1,",
            "    const int* noel, const int* npt, const int* layer, const int* kspt,",
            "    const int* kstep, const int* kinc);", "",
        ]  # fmt: skip
    return [
        *rows,
        *_remark("Fill in the rules of the source file, one for each solve; 0, or an error."),
        f"int64_t {name}_default_rules({name}_rules* rules);", "",
        *_remark("What a call returned, in words."),
        f"const char* {name}_message(int64_t returned);",
    ]  # fmt: skip
