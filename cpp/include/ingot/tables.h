// What C++ shares with Python: printed by `python -m benchmarks.cpp_tables`.
#pragma once
#include <cstdint>

namespace ingot {
namespace tables {

constexpr const char* version = "0.1.0";
constexpr const char* format = "ingot";
constexpr int64_t schema = 4;

// A text by its key: the code, what is wrong, the remedy; words in braces are filled in.
struct Message {
  const char *key, *code, *text, *fix;
};
constexpr Message messages[] = {
    {"no package", "file-not-found", "no package in '{place}'", "compile one: ingot compile FILE"},
    {"torch package", "file-not-found", "'{place}' holds a package of a torch module, not of a model", "load it by ingot.train.load(FOLDER) or ingot.regions.load(FOLDER)"},
    {"two packages", "broken-package", "{folder} holds {files}: which is meant?", "keep that of one package"},
    {"unknown package", "unknown-name", "there is no package '{name}' in '{place}'", "{fix}"},
    {"no json", "broken-package", "{file} is no JSON: {error}", "{again}"},
    {"no format", "broken-package", "{file} describes no package '{form}'", "{again}"},
    {"schema", "wrong-schema", "{file} has schema version {found}, this Ingot reads {schema}", "{again}"},
    {"layout", "broken-package", "{file}: {error}", "{again}"},
    {"seal", "broken-package", "{file} was changed after it was compiled", "{again}"},
    {"other name", "broken-package", "{file} describes '{name}'", "{again}"},
    {"older", "broken-package", "{folder} is older than what stands beside it: the last compile was not for it, or was ended before it", "{again}"},
    {"other folder", "broken-package", "{folder} and {other} beside it differ in their models, precisions or derivatives", "{again}; or load the folder that is meant by itself"},
    {"other program", "broken-package", "the package '{name}' for {device} is of another model, precision or other derivatives than the stub was written for", "{again}; or remove 'program' from the stub, which then loads any"},
    {"no digest", "broken-package", "the metadata names '{file}', and holds no digest of it", "{again}"},
    {"no name", "broken-package", "the metadata holds a digest of '{file}', which it does not name", "{again}"},
    {"digest", "broken-package", "'{file}' was changed after it was compiled", "{again}"},
    {"contract", "broken-package", "'{file}' was compiled with other metadata than lies beside it", "{again}"},
    {"bad name", "broken-package", "{file} is no name of a file in the folder of the package", "{again}"},
    {"missing file", "broken-package", "'{file}' is missing from {folder}", "{again}"},
    {"link", "broken-package", "'{file}' is a link that leads out of {folder}", "{again}"},
    {"no file", "broken-package", "'{file}' in {folder} is no file", "{again}"},
    {"unreadable file", "broken-package", "'{file}' cannot be read: {error}", "{again}"},
    {"no symbol", "broken-package", "the library shows no '{name}': it is not the one that the metadata describes", "compile the package again"},
    {"other device", "wrong-device", "the package runs on {held}, not on {device}", "{fix}"},
    {"other devices", "wrong-device", "{place} holds a package for {held}, not for '{device}'", "{fix}"},
    {"other precision", "wrong-dtype", "the package computes in {held}, not in {dtype}", "compile with --dtype {dtype}"},
    {"no backend", "wrong-backend", "the package holds no {backend} backend", "compile with --backend {backend}"},
    {"other torch", "wrong-torch", "the package was compiled by torch {held}, this is {here}", "{again}"},
    {"other level", "wrong-level", "the package holds {held}, this machine runs {here}, and there is no compiler", "install g++, or compile the package on a machine like this one"},
    {"other architecture", "wrong-architecture", "the package holds {held}; '{device}' is sm_{own} ({name})", "compile with --cuda-arch {own}"},
    {"no driver", "no-device", "NVIDIA's driver (libcuda.so.1) is not installed", "install it on a machine that has a GPU, or run on the CPU"},
    {"unknown input", "unknown-input", "there is no input '{name}'", "{fix}"},
    {"unknown direction", "unknown-output", "there is no {word} '{name}'", "{fix}"},
    {"missing input", "missing-input", "the input '{name}' is missing", "give '{name}'"},
    {"missing steps", "missing-input", "nothing gives '{name}', which the transient reads at every step", "prescribe '{name}': its values of every step"},
    {"precision", "wrong-dtype", "'{name}' is {dtype}, {who} computes in {held}", "convert it to {held}{other}"},
    {"device", "wrong-device", "'{name}' is on {device}, {who} runs on {held}", "move it to {held}"},
    {"shape", "wrong-shape", "'{name}' has shape {shape}, expected {wanted}", "{fix}"},
    {"steps", "wrong-shape", "'{name}' has shape {shape}, the transient has {steps} steps", "give it the shape ({steps}, ...)"},
    {"no steps", "wrong-value", "a transient of {steps} steps: there is one at least, which is given", "give as many as the prescribed values have"},
    {"batches", "batches-differ", "batch shapes {first} and {second} do not broadcast", "give every input, and every batched parameter, the same batch shape or none"},
    {"not promoted", "unknown-parameter", "'{name}' is not promoted", "{fix}"},
    {"ambiguous", "ambiguous-parameter", "'{name}' may be {found}", "write more of it, such as '{first}'"},
    {"twice", "wrong-input", "'{first}' and '{second}' are the same parameter", "give one of the two"},
    {"no derivatives", "no-derivatives", "the package was compiled without {what}", "{fix}"},
    {"no pair", "no-derivatives", "the pair {output}:{input} was not compiled", "compile with {spelled}{remedy}"},
    {"rule", "wrong-value", "'{name}' should be {allowed}, but is {value}", "give {default}"},
    {"no memory", "no-memory", "the kernel found no memory for this call", "give it fewer points at a time"},
    {"not converged", "not-converged", "'{solve}': {failed} of {points} points did not converge; worst is point {point}{when}, residual {residual} ({reason})", "halve the time step, or raise max_its{more}"},
    {"no stub file", "file-not-found", "there is no file '{file}'", "{fix}"},
    {"unknown option", "unknown-option", "{title} has no option '{name}'", "{fix}"},
    {"no stub", "no-stub", "{file} is no stub: it does not hold one model of type AOTIModel alone", "name the package's folder, or the stub that was written beside it"},
    {"wrong value", "wrong-value", "'{name}' should be {expected}, but {verb} {shown}", "{fix}"},
    {"no choice", "wrong-value", "'{name}' is one of {choices}, not '{word}'", "{fix}"},
    {"unknown type", "unknown-type", "no {what} '{name}'", "{fix}"},
    {"unknown block", "unknown-block", "{title} has no sub-block '{name}'", "{fix}"},
    {"two ways", "wrong-value", "'solver' is for all updates, 'solvers' says which is whose", "keep one of the two"},
    {"unknown update", "unknown-update", "the package has no update '{name}'", "{fix}"},
    {"two solvers", "wrong-value", "'solvers' names two solvers for '{name}'", "keep one of the two"},
    {"missing block", "missing-block", "[{section}] has no block '{name}'", "{fix}"},
    {"missing option", "missing-option", "{title} needs the option '{name}'", "add '{name} = ...'"},
    {"null", "wrong-input", "'{name}' is a null pointer", "give an array, or the shape of none"},
    {"negative size", "wrong-shape", "'{name}' has shape {shape}, and no size is below zero", "give the sizes of its axes"},
    {"strides", "wrong-shape", "'{name}' has {count} strides and the shape {shape}", "give a stride for each axis, or none"},
    {"alignment", "wrong-input", "'{name}' does not lie where a {dtype} may", "give an aligned pointer"},
    {"named twice", "wrong-input", "'{name}' is given twice", "give it once"},
    {"count", "wrong-shape", "'{name}' is given {given} numbers for the shape {shape}", "give {wanted} numbers"},
    {"overlap", "wrong-input", "'{name}' is written where '{other}' lies", "give it memory of its own"},
    {"output shape", "wrong-shape", "'{name}' has shape {shape}, the call gives {wanted}", "give it that shape"},
    {"unknown solve", "unknown-update", "the package has no solve '{name}'", "{fix}"},
    {"too large", "wrong-shape", "{points} points are more than memory can hold", "give fewer points"},
    {"sums", "batch-reduction", "'{name}' sums over points, and C++ computes each point by itself", "call it from Python"},
    {"no torch", "wrong-backend", "the graphs of '{name}' run on libtorch, which this program was built without", "include ingot/torch.h and link libtorch, or compile with --backend kernel"},
    {"stub beyond", "unresolved-substitution", "{file}:{line}: C++ reads no {what} in a stub", "write the value itself, or name the package's folder"},
    {"stub syntax", "parse-error", "{file}:{line}: {told}", "compile the package again: it writes the stub"},
    {"no such device", "no-device", "there is no device '{name}': {why}", "{fix}"},
    {"no device name", "no-device", "'{name}' is no device: there are cpu, cuda", "{fix}"},
    {"driver", "no-device", "CUDA: {told}", "run it on the CPU, or see to the GPU"},
    {"no devices", "no-device", "a dispatcher was given no device", "name one or more, such as 'cpu'"},
};

// Words that mean another, whatever their letters say.
struct Meant {
  const char *word, *means;
};
constexpr Meant meant[] = {
    {"gpu", "cuda"},
    {"nvidia", "cuda"},
    {"double", "float64"},
    {"single", "float32"},
    {"float", "float32"},
    {"half", "float32"},
    {"float16", "float32"},
    {"bfloat16", "float32"},
};

// What metadata can say that does not agree with itself.
struct Word {
  const char *key, *text;
};
constexpr Word inconsistent[] = {
    {"kind", "'{name}' is of a kind '{kind}' that does not exist"},
    {"base", "'{name}' has base {base}, a {kind} has {wanted}"},
    {"size", "'{name}' has {size} numbers, its axes {axes} and {base} do not"},
    {"value", "the value of '{name}' has shape {shape} and {count} numbers"},
    {"twice", "the {what} '{name}' is there {count} times"},
    {"not there", "{where} names '{name}', which is not there"},
    {"derivative", "a derivative of '{name}'"},
    {"segment", "the segment '{name}'"},
    {"outputs", "the list of outputs"},
    {"implicit", "solvers and implicit segments are not the same"},
    {"unknowns", "the solver '{name}' has no unknowns"},
    {"backend", "there is no backend"},
    {"graphs device", "there are graphs, and the package is for {device}"},
    {"adjoints", "there are adjoints, and no kernel that gives them"},
    {"library", "the kernel has no library"},
    {"header", "a kernel for {device} {has} a header"},
    {"architecture", "'{name}' is no architecture of a GPU"},
    {"graphs dtype", "the graphs compute in {dtype}"},
    {"given names", "the table of given names"},
    {"graphs inputs", "the graphs take other inputs than the package"},
    {"graphs outputs", "the graphs give other outputs than the package"},
    {"graphs", "the graphs"},
    {"graphs shape", "'{name}' has another shape in the graphs"},
    {"graphs derivatives", "the graphs have other derivatives than the package"},
    {"graphs solves", "the graphs have other solves than the package"},
    {"graphs segment", "a segment of the graphs"},
    {"a solve", "a solve"},
    {"solve graph", "the solve '{name}' lacks a graph"},
    {"solve guess", "the solve '{name}' has not one guess for each unknown"},
    {"slope", "a derivative of a segment"},
    {"solve residual", "the solve '{name}' has not one residual for each unknown"},
    {"residuals", "the residuals of '{name}'"},
    {"solve derivatives", "the solve '{name}' lacks derivatives of its residuals"},
};

// Kinds of values and their base shapes.
struct Kind {
  const char* name;
  int rank;
  int64_t base[2];
};
constexpr Kind kinds[] = {
    {"Scalar", 0, {0}},
    {"Vec", 1, {3}},
    {"SR2", 1, {6}},
    {"WR2", 1, {3}},
    {"R2", 2, {3, 3}},
    {"MRP", 1, {3}},
    {"SSR4", 2, {6, 6}},
    {"MillerIndex", 1, {3}},
    {"Quaternion", 1, {4}},
};

// CPU levels, best first, and what each needs of the words of /proc/cpuinfo.
struct Level {
  const char *name, *words;
};
constexpr Level levels[] = {
    {"x86-64-v4", "avx512bw avx512cd avx512dq avx512f avx512vl"},
    {"x86-64-v3", "avx2 bmi1 bmi2 f16c fma movbe"},
    {"x86-64-v2", "popcnt sse4_2 ssse3"},
};

// A rule of a solve: its name in metadata and in a stub, what is allowed, what it
// is unless told, and its range; a word is its place among the choices.
struct Rule {
  const char *name, *option, *allowed, *value;
  bool whole;
  double least, most;
  bool above, below;  // whether the bounds themselves are out
  // json: what it is unless told, as metadata has it; example: one that is in range
  const char *choices, *json, *example;
};
constexpr Rule rules[] = {
    {"abs_tol", "abs_tol", "a finite number of at least 0", "1e-10", false, 0.0, 1.7976931348623157e+308, false, false, "", "1e-10", "1"},
    {"rel_tol", "rel_tol", "a finite number of at least 0", "1e-08", false, 0.0, 1.7976931348623157e+308, false, false, "", "1e-08", "1"},
    {"max_its", "max_its", "a whole number of at least 1 and at most 2147483647", "25", true, 1.0, 2147483647.0, false, false, "", "25", "1"},
    {"stop", "stop", "one of point, batch", "'point'", true, 0.0, 1.0, false, false, "point batch", "\"point\"", "another"},
    {"linesearch", "linesearch_type", "one of NONE, BACKTRACKING, STRONG_WOLFE", "'NONE'", true, 0.0, 2.0, false, false, "NONE BACKTRACKING STRONG_WOLFE", "\"NONE\"", "another"},
    {"max_linesearch_iterations", "max_linesearch_iterations", "a whole number of at least 0 and at most 2147483647", "10", true, 0.0, 2147483647.0, false, false, "", "10", "1"},
    {"linesearch_cutback", "linesearch_cutback", "a finite number above 1", "2.0", false, 1.0, 1.7976931348623157e+308, true, false, "", "2.0", "2"},
    {"linesearch_stopping_criteria", "linesearch_stopping_criteria", "a finite number of at least 0 and below 1", "0.001", false, 0.0, 1.0, false, true, "", "0.001", "0.3"},
    {"substep_del_tol", "substep_del_tol", "a finite number of at least 0", "1e-06", false, 0.0, 1.7976931348623157e+308, false, false, "", "1e-06", "1"},
};
}  // namespace tables
}  // namespace ingot
