"""The C header of a kernel package: what the library exports, with no dependency."""

from ingot.options import Newton, knobs_of
from ingot.package.metadata import Metadata, ParameterInfo, VariableInfo

__all__ = ["c_name", "header", "wrapper"]


def c_name(name: str) -> str:
    """A name that C accepts."""
    kept = "".join(ch if ch.isalnum() else "_" for ch in name)
    return kept if kept[:1].isalpha() else f"model_{kept}"


def header(meta: Metadata) -> str:
    """The text of `<name>.h`."""
    name, real = c_name(meta.name), "double" if meta.dtype == "float64" else "float"
    guard = f"INGOT_{name.upper()}_H"
    rows = [
        f"/* {meta.name}, compiled by Ingot from {meta.origin.file}.",
        "   Arrays are point-major: points x size numbers each, in the order given here.",
        "   Inputs are never written. Outputs of a point that fails are NaN. */",
        f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", "",
        "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
        *_listed("inputs", name, meta.inputs),
        *_listed("parameters", name, tuple(p.variable for p in meta.parameters)),
        *_listed("outputs", name, meta.outputs),
        *_blocks(meta, name),
        f"enum {{ {name}_solves = {len(meta.solvers)} }};",
        "",
        "/* What became of a point in a solve: 0 converged, 1 out of steps, 2 not finite. */",
        f"typedef struct {{ int8_t reason; int32_t iterations; {real} residual; int32_t pivoted; }}"
        f" {name}_status;",
        "",
        "/* One step of all points. parameters may be NULL: the values of the source file.",
        "   status may be NULL, else it holds solves x points. Returns how many points failed,",
        "   or -1 where a stored batched parameter has another number of points. */",
        f"int64_t {name}_forward(int64_t points, const {real}* const* inputs,",
        f"                       const {real}* const* parameters, {real}* const* outputs,",
        f"                       {name}_status* status);",
    ]  # fmt: skip
    if meta.derivatives:
        rows += [
            "",
            "/* The same with derivative blocks, points x size numbers each. */",
            f"int64_t {name}_jacobian(int64_t points, const {real}* const* inputs,",
            f"                        const {real}* const* parameters, {real}* const* outputs,",
            f"                        {real}* const* blocks, {name}_status* status);",
        ]
    rows += ["", "#ifdef __cplusplus", "}", "#endif", f"#endif /* {guard} */", ""]
    return "\n".join(rows)


def _listed(what: str, name: str, variables: tuple[VariableInfo, ...]) -> list[str]:
    rows = [f"/* {what}:"]
    rows += [f"   {i}  {v.name}: {v.kind}, {v.size} numbers" for i, v in enumerate(variables)]
    return [*rows, "*/", f"enum {{ {name}_{what} = {len(variables)} }};", ""]


def _blocks(meta: Metadata, name: str) -> list[str]:
    sizes = {v.name: v.size for v in (*meta.inputs, *(p.variable for p in meta.parameters))}
    outs = {v.name: v.size for v in meta.outputs}
    rows = ["/* derivative blocks:"]
    rows += [
        f"   {i}  d {b.output} / d {b.input}, {outs[b.output]} x {sizes[b.input]} numbers"
        for i, b in enumerate(meta.derivatives)
    ]
    return [*rows, "*/", f"enum {{ {name}_blocks = {len(meta.derivatives)} }};", ""]


def wrapper(meta: Metadata) -> str:
    """The C++ that gives a kernel its C functions; it follows the kernel's own entries."""
    name = c_name(meta.name)
    rows = [f"namespace ingot_{name} {{", "using ingot::real;"]
    constants = [*meta.parameters, *meta.constants]
    for i, p in enumerate(constants):
        values = ", ".join(f"real({v!r})" for v in p.value.values) or "0"
        rows.append(f"const real constant_{i}[] = {{{values}}};")
    knobs = ", ".join(
        "{" + ", ".join(repr(k.c_value(getattr(s, k.name))) for k in knobs_of(Newton)) + ", 0}"
        for s in meta.solvers
    )
    rows.append(f"const ingot::Knobs knobs[] = {{{knobs or '{}'}}};")
    inputs = ", ".join(str(v.size) for v in meta.inputs) or "0"
    rows.append(f"const int64_t input_size[] = {{{inputs}}};")
    outputs = [v.size for v in meta.outputs]
    sizes = {v.name: v.size for v in (*meta.inputs, *(p.variable for p in constants))}
    outs = {v.name: v.size for v in meta.outputs}
    blocks = [outs[b.output] * sizes[b.input] for b in meta.derivatives]
    rows.append(f"const int64_t gives_size[] = {{{', '.join(map(str, [*outputs, *blocks]))}}};")
    rows += _call(meta, constants)
    rows += ["}  // namespace", ""]
    kernel = meta.kernel
    assert kernel is not None
    rows += _entry(meta, "forward", kernel.forward, blocks=False)
    if kernel.jacobian:
        rows += _entry(meta, "jacobian", kernel.jacobian, blocks=True)
    return "\n".join(rows) + "\n"


def _call(meta: Metadata, constants: list[ParameterInfo]) -> list[str]:
    n, solves = len(meta.inputs), len(meta.solvers)
    rows = [
        "struct Status { int8_t reason; int32_t iterations; real residual; int32_t pivoted; };",
        "template <class Run> int64_t call(Run run, int64_t points, const real* const* inputs,",
        "    [[maybe_unused]] const real* const* parameters, real* const* outputs,",
        "    real* const* blocks, Status* status) {",
        f"  ingot_given in[{n + len(constants)} + 1];",
        f"  for (int i = 0; i < {n}; ++i) in[i] = {{inputs[i], 0, input_size[i], 1, 0}};",
    ]
    for i, p in enumerate(constants):
        size = p.variable.size
        batch = len(p.value.values) // size if size else 1
        given = f"constant_{i}"
        if i < len(meta.parameters):
            given = f"parameters ? parameters[{i}] : {given}"
        if batch > 1:
            rows.append(f"  if (points != {batch}) return -1;")
        rows.append(f"  in[{n + i}] = {{{given}, 0, {size if batch > 1 else 0}, 1, 0}};")
    gives = len(meta.outputs)
    rows += [
        f"  ingot_gives out[{gives + len(meta.derivatives)} + 1];",
        f"  for (int i = 0; i < {gives}; ++i) out[i] = {{outputs[i], 0, gives_size[i], 1}};",
        f"  if (blocks) for (int i = 0; i < {len(meta.derivatives)}; ++i)",
        f"    out[{gives} + i] = {{blocks[i], 0, gives_size[{gives} + i], 1}};",
        f"  std::vector<int8_t> reason({solves} * points + 1);",
        f"  std::vector<int32_t> iterations({solves} * points + 1);",
        f"  std::vector<int32_t> pivoted({solves} * points + 1);",
        f"  std::vector<real> residual({solves} * points + 1);",
        f"  ingot::Reports::One reports[{solves} + 1];",
        f"  for (int64_t s = 0; s < {solves}; ++s)",
        "    reports[s] = {&reason[s * points], &iterations[s * points], &residual[s * points],",
        "                  &pivoted[s * points]};",
        "  run(in, out, knobs, reports, points, 0, 1, 0, points);",
        "  int64_t failed = 0;",
        "  for (int64_t i = 0; i < points; ++i) {",
        "    bool bad = false;",
        f"    for (int64_t s = 0; s < {solves}; ++s) {{",
        "      const int64_t at = s * points + i;",
        "      bad |= reason[at] != 0;",
        "      if (status) status[at] = {reason[at], iterations[at], residual[at], pivoted[at]};",
        "    }",
        "    failed += bad;",
        "  }",
        "  return failed;",
        "}",
    ]
    return rows


def _entry(meta: Metadata, what: str, entry: str, *, blocks: bool) -> list[str]:
    name = c_name(meta.name)
    extra = "ingot::real* const* blocks, " if blocks else ""
    return [
        f'extern "C" int64_t {name}_{what}(int64_t points, const ingot::real* const* inputs,',
        "    const ingot::real* const* parameters, ingot::real* const* outputs,",
        f"    {extra}ingot_{name}::Status* status) {{",
        f"  return ingot_{name}::call({entry}, points, inputs, parameters, outputs,",
        f"      {'blocks' if blocks else 'nullptr'}, status);",
        "}",
        "",
    ]
