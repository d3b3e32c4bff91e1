"""The C++ behind the C header of a kernel package: tables that describe it, and its functions."""

from collections.abc import Iterable

from ingot.codegen.compiler import join_headers
from ingot.codegen.source import write_entries
from ingot.codegen.values import write_number
from ingot.options import Knob, Meta, Newton, Range, knobs_of, meta_of
from ingot.package.header import ERRORS, count_block_sizes
from ingot.package.metadata import Metadata

__all__ = ["write_wrapper"]


def write_wrapper(meta: Metadata) -> str:
    """The C++ that gives a kernel its C functions; it follows the kernel's own entries.

    It stands in two parts around `c_functions.h`: tables of the package, and what it shows.
    """
    assert meta.kernel is not None
    prefix = meta.kernel.prefix
    if meta.cuts:
        return write_entries(prefix, meta.entries)
    shown = [write_entries(prefix, meta.entries), *(_write_entry(prefix, x) for x in meta.entries)]
    return "\n".join(
        [*_write_tables(meta), join_headers(("c_functions.h",)), *shown, *_write_helpers(prefix)]
    )


def _write_tables(meta: Metadata) -> list[str]:
    constants = [*meta.parameters, *meta.constants]
    reads = [v.size for v in meta.inputs] + [p.variable.size for p in constants]
    gives = [*(v.size for v in meta.outputs), *count_block_sizes(meta)]
    counts = {
        "inputs": len(meta.inputs), "parameters": len(meta.parameters),
        "constants": len(meta.constants), "outputs": len(meta.outputs),
        "blocks": len(meta.derivatives), "solves": len(meta.solvers),
        "cotangents": len(meta.outputs) if meta.adjoints else 0,
        "adjoints": len(meta.inputs) + len(meta.parameters) if meta.adjoints else 0,
    }  # fmt: skip
    rows = [
        "namespace ingot {", "namespace {", "namespace package {", "",
        f"constexpr int {', '.join(f'{k} = {v}' for k, v in counts.items())};",
        f"constexpr int64_t largest = {max([*reads, *gives, len(meta.solvers), 1])};",
        _write_row("constexpr int64_t read_size[]", map(str, reads)),
        _write_row("constexpr int64_t gives_size[]", map(str, gives)),
        "struct Values { const real* data; int64_t count; };",
        "struct Status { int8_t reason; int32_t iterations; real residual; int32_t pivoted; };",
    ]  # fmt: skip
    for i, p in enumerate(constants):
        rows.append(_write_row(f"constexpr real stored_{i}[]", map(write_number, p.value.values)))
    batches = [len(p.value.values) // p.variable.size for p in constants]
    rows.append(
        _write_row(
            "constexpr Values stored[]", (f"{{stored_{i}, {n}}}" for i, n in enumerate(batches))
        )
    )
    return [
        *rows,
        *_write_ranges(meta),
        *_write_rules_tables(meta),
        "",
        "}  // namespace",
        "}  // namespace",
        "}  // namespace ingot",
    ]


def _write_row(declared: str, values: Iterable[str]) -> str:
    """An array, which C++ lets not be empty."""
    return f"{declared} = {{{', '.join(values) or '{}'}}};"


def _write_rules_tables(meta: Metadata) -> list[str]:
    knobs = knobs_of(Newton)
    solves = (
        f"{{{', '.join(repr(k.c_value(getattr(s, k.name))) for k in knobs)}}}" for s in meta.solvers
    )
    fields = ", ".join(f"r.{k.name}" for k in knobs)
    return [
        "struct Rules {", *(f"  {k.c_type} {k.name};" for k in knobs), "};",
        _write_row("constexpr Rules source_rules[]", solves),
        "[[maybe_unused]] INGOT_CALL Knobs knobs_of(const Rules& r) {",
        f"  return {{{fields}, 0}};", "}",
        "[[maybe_unused]] INGOT_CALL bool lawful(const Rules& r) {",
        f"  return {' && '.join(test for k in knobs for test in _write_tests(k))};", "}",
    ]  # fmt: skip


def _write_tests(knob: Knob) -> list[str]:
    """The conditions of C++ that a rule must meet; NaN meets none."""
    if knob.choices:
        return [f"r.{knob.name} >= 0", f"r.{knob.name} < {len(knob.choices)}"]
    rule = f"r.{knob.name}"
    finite = [f"{rule} - {rule} == 0"] if knob.c_type == "double" else []
    return _write_bounds(meta_of(knob.kind), rule) + finite


def _write_bounds(meta: Meta | Range, value: str) -> list[str]:
    bounds = ((">", meta.gt), (">=", meta.ge), ("<", meta.lt), ("<=", meta.le))
    return [f"{value} {sign} {bound!r}" for sign, bound in bounds if bound is not None]


def _write_ranges(meta: Metadata) -> list[str]:
    """Whether all numbers of a parameter lie in its range; NaN lies in none."""
    ranged = [(i, p.range) for i, p in enumerate(meta.parameters) if p.range is not None]
    if not ranged:
        always = "bool in_range(int, const real*, int64_t) { return true; }"
        return [f"[[maybe_unused]] INGOT_INLINE {always}"]
    cases = [
        f"    case {i}: for (int64_t k = 0; k < count; ++k) {{ const double x = data[k];"
        f" all &= {' & '.join(f'({test})' for test in (*_write_bounds(own, 'x'), 'x - x == 0'))};"
        " } break;"
        for i, own in ranged
    ]
    return [
        "INGOT_CALL bool in_range(int parameter, const real* data, int64_t count) {",
        "  bool all = true;", "  switch (parameter) {", *cases, "  }", "  return all;", "}",
    ]  # fmt: skip


def _write_entry(prefix: str, what: str) -> str:
    """One function of the header; `more` is what it writes beside outputs."""
    more = {"forward": "nullptr", "jacobian": "blocks", "vjp": "adjoints"}[what]
    kind = "values" if what == "forward" else more
    read = "cotangents" if what == "vjp" else "nullptr"
    reads = f"const ingot::real* const* {read}, " if what == "vjp" else ""
    writes = f" ingot::real* const* {more}," if what != "forward" else ""
    return "\n".join([
        f"INGOT_EXPORT int64_t {prefix}_{what}(int64_t points, const ingot::real* const* inputs,",
        "    const ingot::package::Values* parameters, const ingot::package::Rules* rules,",
        f"    {reads}ingot::real* const* outputs,{writes} ingot::package::Status* status) {{",
        f"  return ingot::package::run_all(ingot::{what}, ingot::package::gives_{kind}, points,",
        f"      inputs, parameters, rules, {read}, outputs, {more}, status);",
        "}", "",
    ])  # fmt: skip


def _write_helpers(prefix: str) -> list[str]:
    said = "\n".join(
        f'    case {-i}: return "{text}";' for i, text in enumerate(ERRORS.values(), 1)
    )
    return [
        f"INGOT_EXPORT int64_t {prefix}_default_rules(ingot::package::Rules* rules) {{",
        "  return ingot::package::default_rules(rules);", "}", "",
        f"INGOT_EXPORT const char* {prefix}_message(int64_t returned) {{",
        '  if (returned == 0) return "all points converged";',
        '  if (returned > 0) return "so many points did not converge; their outputs are NaN";',
        "  switch (returned) {", said,
        '    default: return "no call returns this";', "  }", "}", "",
    ]  # fmt: skip
