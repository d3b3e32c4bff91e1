// The metadata of a package: read, checked as Python checks it, in Python's words.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "error.h"
#include "json.h"
#include "sha256.h"

namespace ingot {

using Shape = std::vector<int64_t>;

// An input, an output or a parameter: its kind, the sizes of its structural axes, its base shape.
struct Variable {
  std::string name, kind;
  Shape base, sub_batch;
  int64_t size = 0;

  Shape shape() const {  // of one value
    Shape made = sub_batch;
    made.insert(made.end(), base.begin(), base.end());
    return made;
  }
};

// The finite numbers that a parameter may be: all, unless a bound is set.
struct Range {
  bool is_set = false;
  double gt = NAN, ge = NAN, lt = NAN, le = NAN;  // NaN where there is no such bound

  bool holds(double x) const {
    return std::isfinite(x) && !(x <= gt) && !(x < ge) && !(x >= lt) && !(x > le);
  }
};

// A promoted parameter or a batched constant: the value it starts from, its other names, its range.
struct Parameter {
  Variable variable;
  Shape shape;
  std::vector<double> values;
  std::vector<std::string> spellings;
  Range range;
};

// When a solve stops and how far it steps: `<name>_rules` of a package's header, `ingot_rules` inside.
struct Rules {
  double abs_tol = 1e-10, rel_tol = 1e-8;
  int32_t max_its = 25, stop = 0, linesearch = 0, max_linesearch_iterations = 10;
  double linesearch_cutback = 2.0, linesearch_stopping_criteria = 1e-3, substep_del_tol = 1e-6;
  int32_t min_its = 0;
};

enum Stop : int32_t { stop_point = 0, stop_batch = 1 };
enum LineSearch : int32_t { no_linesearch = 0, backtracking = 1, strong_wolfe = 2 };

struct Solver {
  std::string name;
  std::vector<std::string> unknowns;
  Rules rules;
};

// A derivative block that was compiled.
struct Block {
  std::string output, input;
  bool batch_independent = false;
};

namespace detail {

struct GraphValue {
  std::string name, kind;
  Shape sizes, base;
  int64_t width() const {
    int64_t n = 1;
    for (int64_t each : sizes) n *= each;
    for (int64_t each : base) n *= each;
    return n;
  }
};

struct Part {
  std::string name, role, other;
};

struct Description;

struct GraphSegment {
  bool implicit = false;
  std::string name, value, jvp, rhs, step, ift, predictor;  // files; empty where there is none
  std::vector<std::string> reads, gives, columns, guesses;
  std::vector<Block> slopes;
  std::shared_ptr<Description> inner;
  Rules rules;
  int64_t level = 0;
  std::vector<Part> parts;

  // What the unknowns have a derivative by, in parts of a step too.
  std::vector<std::string> varied() const {
    std::vector<std::string> found;
    const auto add = [&](const std::string& n) {
      if (!has(found, n)) found.push_back(n);
    };
    if (columns.empty()) return found;
    for (const auto& n : columns) add(n);
    for (const Part& p : parts) add(p.name);
    for (const Part& p : parts)
      if (p.role != "carried") add(p.name), add(p.other);
    return found;
  }
};

// All that running the graphs of a folder needs.
struct Description {
  std::string dtype;
  std::vector<GraphValue> values;
  std::vector<std::string> inputs, parameters, outputs;
  std::map<std::string, std::string> given;
  std::vector<GraphSegment> segments;
  std::vector<Block> slopes;

  void list_files(std::vector<std::string>& to) const {
    for (const GraphSegment& s : segments) {
      if (s.inner) s.inner->list_files(to);
      for (const std::string* file : {&s.value, &s.jvp, &s.rhs, &s.step, &s.ift, &s.predictor})
        if (!file->empty()) to.push_back(*file);
    }
  }
  void list_solves(std::vector<std::string>& to) const {
    for (const GraphSegment& s : segments) {
      if (!s.implicit) continue;
      if (s.inner) s.inner->list_solves(to);
      if (!has(to, s.name)) to.push_back(s.name);
    }
  }
};

struct Segment {
  std::string kind, name;
  std::vector<std::string> reads, gives;
};

struct Kernel {
  std::vector<std::pair<std::string, std::string>> libraries;  // file by level
  std::string source, header, prefix, umat;  // umat: of a user material, empty where it is none
  bool has_header = false, has_umat = false;
};

}  // namespace detail

// All that a loader needs to know of a package.
struct Metadata {
  std::string name, device, dtype, torch_version, command, program;
  std::vector<Variable> inputs, outputs;
  std::vector<Parameter> parameters, constants;
  std::vector<Solver> solvers;
  std::vector<detail::Segment> segments;
  std::vector<Block> derivatives;
  bool adjoints = false, sums = false;  // sums: over points, so that C++ cannot call it
  std::shared_ptr<detail::Kernel> kernel;
  std::shared_ptr<detail::Description> inductor;
  std::vector<std::pair<std::string, std::string>> digests;
  std::string contract;

  std::vector<std::string> files() const {
    std::vector<std::string> found;
    if (kernel) {
      for (const auto& [level, file] : kernel->libraries) found.push_back(file);
      found.push_back(kernel->source);
      if (kernel->has_header) found.push_back(kernel->header);
      if (kernel->has_umat) found.push_back(kernel->umat);
    }
    if (inductor) inductor->list_files(found);
    return found;
  }
};

namespace detail {

inline std::string again_of(const Metadata& meta) {
  return "compile it again: " + (meta.command.empty() ? std::string("ingot compile") : meta.command);
}

// How an option is spelled by whoever compiled the package.
inline std::string spell(const Metadata& meta, const std::string& option, const std::string& value = "") {
  const bool several = option == "derivative" || option == "parameter" || option == "example_batch_shape";
  if (!meta.command.empty() && meta.command != "ingot.compile") {
    const std::string flag = option == "derivative"            ? "-d"
                             : option == "parameter"           ? "-p"
                             : option == "example_batch_shape" ? "--example-batch-shape"
                                                               : "--" + option;
    return value.empty() ? flag : flag + " " + value;
  }
  if (option == "dtype") return "dtype=torch." + value;
  return several ? option + "=('" + value + "',)" : option + "=True";
}

struct Malformed {
  std::string told;
};

// A number by the fewest digits that mean it, with an exponent where its power of ten is below `least`
// or above 15; how Python writes an exponent differs between its prompt and its JSON.
template <class Exponent> std::string write_digits(double value, int least, Exponent exponent) {
  char text[40];
  for (int digits = 0; digits <= 16; ++digits) {
    std::snprintf(text, sizeof text, "%.*e", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  const std::string found = text;
  const size_t mark = found.find('e');
  const int power = std::atoi(found.c_str() + mark + 1);
  const std::string sign = found[0] == '-' ? "-" : "";
  std::string digits = found.substr(sign.size(), mark - sign.size());
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  if (power < least || power > 15)
    return sign + digits.substr(0, 1) + (digits.size() > 1 ? "." + digits.substr(1) : "") + "e" + exponent(power);
  if (power < 0) return sign + "0." + std::string(size_t(-power - 1), '0') + digits;
  const size_t whole = size_t(power) + 1;
  if (digits.size() < whole) digits += std::string(whole - digits.size(), '0');
  return sign + digits.substr(0, whole) + "." + (digits.size() > whole ? digits.substr(whole) : "0");
}

// A number as Python prints it.
inline std::string show_number(double value, bool whole) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (whole) return std::to_string(static_cast<long long>(value));
  return write_digits(value, -4, [](int power) {
    const std::string digits = std::to_string(std::abs(power));
    return (power < 0 ? "-" : "+") + std::string(digits.size() < 2 ? "0" : "") + digits;
  });
}

// A number as Python's writer of JSON writes it.
inline std::string write_real(double value) {
  return write_digits(value, -5, [](int power) { return std::to_string(power); });
}

// What a range allows, in words that follow `should be`, and a number in it.
inline std::string tell_range(const Range& range) {
  const auto show = [](double x) {
    const std::string made = show_number(x, false);
    const bool whole = made.size() > 2 && made.compare(made.size() - 2, 2, ".0") == 0;
    return whole ? made.substr(0, made.size() - 2) : made;
  };
  if (!std::isnan(range.ge) && !std::isnan(range.le) && std::isnan(range.gt) && std::isnan(range.lt))
    return "a finite number from " + show(range.ge) + " to " + show(range.le);
  std::vector<std::string> words;
  const auto add = [&](const char* word, double bound) {
    if (!std::isnan(bound)) words.push_back(word + show(bound));
  };
  add("above ", range.gt), add("of at least ", range.ge), add("below ", range.lt), add("up to ", range.le);
  return words.empty() ? "a finite number" : "a finite number " + join(words, " and ");
}
inline std::string find_example(const Range& range) {
  for (const auto& [value, shown] : {std::pair<double, const char*>{1, "1"}, {0.3, "0.3"}, {2, "2"}, {10, "10"},
                                     {0, "0"}, {-1, "-1"}})
    if (range.holds(value)) return shown;
  return "another";
}

// Values of a JSON document as they are declared, read in the order of the document as Python's reader
// reads them; what is not so is told as that tells it. What was read stands there as Python would write
// it: numbers by the fewest digits, and what may be absent with its default.
class Place {
 public:
  Place(Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& told) const {
    throw Malformed{told + (path_ == "$" ? "" : " - at `" + path_ + "`")};
  }
  [[noreturn]] void mistyped(const std::string& wanted) const {
    if (json_.is_bare()) throw Malformed{"JSON is malformed: invalid character (byte " + json_.text + ")"};
    if (json_.type == Json::number && !std::isfinite(json_.real())) fail("Number out of range");
    static const char* const names[] = {"null", "bool", "int", "str", "array", "object"};
    const char* found = json_.type == Json::number && !json_.is_whole() ? "float" : names[json_.type];
    fail("Expected `" + wanted + "`, got `" + (json_.is_wild() ? "float" : found) + "`");
  }

  bool is_null() const { return json_.type == Json::null; }
  const Json& json() const { return json_; }

  std::string text(const char* wanted = "str") const {
    if (json_.type != Json::string) mistyped(wanted);
    return json_.text;
  }
  std::string text_or_none() const { return is_null() ? "" : text("str | null"); }
  std::string choice(const std::vector<std::string>& words, const char* wanted = "str") const {
    const std::string found = text(wanted);
    if (!has(words, found)) fail("Invalid enum value '" + found + "'");
    return found;
  }
  std::string digest() const {
    const std::string found = text();
    if (found.size() != 64 || found.find_first_not_of("0123456789abcdef") != std::string::npos)
      fail("Expected `str` matching regex '^[0-9a-f]{64}$'");
    return found;
  }
  bool truth() const {
    if (json_.type != Json::boolean) mistyped("bool");
    return json_.truth;
  }
  int64_t whole() const {
    if (!json_.is_whole()) mistyped("int");
    if (json_.raw == "-0") json_.raw = "0";
    return json_.is_small() ? json_.whole() : json_.raw[0] == '-' ? INT64_MIN : INT64_MAX;
  }
  double real(const char* wanted = "float") const {
    if (json_.is_wild()) {
      const double inf = std::numeric_limits<double>::infinity();
      const std::string& told = json_.items[0].text;
      return told == "inf" ? inf : told == "-inf" ? -inf : std::numeric_limits<double>::quiet_NaN();
    }
    if (json_.type != Json::number || json_.is_bare()) mistyped(wanted);
    const double value = json_.raw == "-0" ? 0.0 : json_.real();
    if (!std::isfinite(value)) fail("Number out of range");
    json_.raw = write_real(value);
    return value;
  }
  template <class Read> auto list(Read read) const {
    if (json_.type != Json::array) mistyped("array");
    std::vector<decltype(read(*this))> made;
    made.reserve(json_.items.size());
    for (size_t i = 0; i < json_.items.size(); ++i)
      made.push_back(read(Place(json_.items[i], path_ + "[" + std::to_string(i) + "]")));
    return made;
  }
  std::vector<std::string> words() const {
    return list([](const Place& p) { return p.text(); });
  }
  Shape wholes() const {
    return list([](const Place& p) { return p.whole(); });
  }
  // A table keeps the place of the first of equal names, and the value of the last.
  template <class Read> auto table(Read read) const {
    if (json_.type != Json::object || json_.is_wild()) mistyped("object");
    std::vector<std::pair<std::string, decltype(read(*this))>> made;
    for (size_t i = 0; i < json_.items.size(); ++i) {
      auto value = read(Place(json_.items[i], path_ + "[...]"));
      const auto same = [&](const auto& each) { return each.first == json_.keys[i]; };
      const auto at = std::find_if(made.begin(), made.end(), same);
      if (at == made.end()) made.emplace_back(json_.keys[i], std::move(value));
      else at->second = std::move(value);
    }
    return made;
  }
  std::vector<std::pair<std::string, std::string>> words_by_name() const {
    return table([](const Place& p) { return p.text(); });
  }

  // A field of an object, what reads it, and the JSON that stands for it where it is absent: none where
  // it must be there, an empty one where nothing does.
  struct Field {
    std::string name;
    std::function<void(const Place&)> read;
    const char* otherwise = nullptr;
  };
  void object(const std::vector<Field>& fields, const char* wanted = "object") const {
    if (json_.type != Json::object || json_.is_wild()) mistyped(wanted);
    for (size_t i = 0; i < json_.keys.size(); ++i) {
      const auto named = [&](const Field& each) { return each.name == json_.keys[i]; };
      const auto field = std::find_if(fields.begin(), fields.end(), named);
      if (field == fields.end()) fail("Object contains unknown field `" + json_.keys[i] + "`");
      field->read(Place(json_.items[i], path_ + "." + field->name));
    }
    for (const Field& each : fields) {
      if (json_.find(each.name)) continue;
      if (!each.otherwise) fail("Object missing required field `" + each.name + "`");
      if (!*each.otherwise) continue;
      json_.keys.push_back(each.name), json_.items.push_back(JsonReader(each.otherwise).read());
      each.read(Place(json_.items.back(), path_ + "." + each.name));
    }
  }
  bool holds(const char* key) const { return json_.find(key) != nullptr; }
  Place operator[](const char* key) const { return Place(*json_.find(key), path_ + "." + key); }

 private:
  Json& json_;
  std::string path_;
};

using Fields = std::vector<Place::Field>;

// Fields that are text, lists of words or lists of whole numbers.
inline Place::Field field(const char* name, std::string& to) {
  return {name, [&to](const Place& p) { to = p.text(); }};
}
inline Place::Field field(const char* name, std::vector<std::string>& to) {
  return {name, [&to](const Place& p) { to = p.words(); }};
}
inline Place::Field field(const char* name, Shape& to) {
  return {name, [&to](const Place& p) { to = p.wholes(); }};
}
inline Place::Field field(const char* name, int64_t& to) {
  return {name, [&to](const Place& p) { to = p.whole(); }};
}
inline Place::Field field(const char* name, bool& to) {
  return {name, [&to](const Place& p) { to = p.truth(); }};
}
inline Place::Field file_field(const char* name, std::string& to) {  // of a graph that may not be there
  return {name, [&to](const Place& p) { to = p.text_or_none(); }};
}
template <class T, class Read> Place::Field list_field(const char* name, std::vector<T>& to, Read read) {
  return {name, [&to, read](const Place& p) { to = p.list(read); }};
}

// What Python prints for a number that bounds another.
inline std::string bound(double value, bool whole) {
  std::string made = std::to_string(int64_t(value));
  return whole ? made : made + ".0";
}

// Where the rule of a table stands in the structure.
inline double* real_rule(Rules& rules, const std::string& name) {
  if (name == "abs_tol") return &rules.abs_tol;
  if (name == "rel_tol") return &rules.rel_tol;
  if (name == "linesearch_cutback") return &rules.linesearch_cutback;
  if (name == "linesearch_stopping_criteria") return &rules.linesearch_stopping_criteria;
  return name == "substep_del_tol" ? &rules.substep_del_tol : nullptr;
}
inline int32_t* whole_rule(Rules& rules, const std::string& name) {
  if (name == "max_its") return &rules.max_its;
  if (name == "stop") return &rules.stop;
  if (name == "linesearch") return &rules.linesearch;
  return name == "max_linesearch_iterations" ? &rules.max_linesearch_iterations : nullptr;
}

inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> made;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string::npos) {
    const size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    made.push_back(text.substr(at, end - at));
    at = end;
  }
  return made;
}

// Whether a number is in the range of its rule.
inline bool is_lawful(const tables::Rule& rule, double value) {
  return std::isfinite(value) && (rule.above ? value > rule.least : value >= rule.least) &&
         (rule.below ? value < rule.most : value <= rule.most);
}

// All that is wrong with rules.
inline std::vector<Problem> find_wrong_rules(Rules rules) {
  std::vector<Problem> problems;
  for (const tables::Rule& rule : tables::rules) {
    const double value = rule.whole ? double(*whole_rule(rules, rule.name)) : *real_rule(rules, rule.name);
    if (!is_lawful(rule, value))
      problems.push_back(tell("rule", {{"name", rule.name},
                                       {"allowed", rule.allowed},
                                       {"value", show_number(value, rule.whole)},
                                       {"default", rule.value}}));
  }
  return problems;
}

// A rule of a solve, as metadata holds it.
inline void read_rule(const Place& at, const tables::Rule& rule, Rules& made) {
  const std::vector<std::string> choices = split(rule.choices);
  if (!choices.empty()) {
    const std::string found = at.choice(choices);
    *whole_rule(made, rule.name) = int32_t(std::find(choices.begin(), choices.end(), found) - choices.begin());
    return;
  }
  const double value = rule.whole ? double(at.whole()) : at.real();
  const std::string kind = rule.whole ? "Expected `int` " : "Expected `float` ";
  const bool unbounded = rule.most == std::numeric_limits<double>::max();
  if (rule.above ? !(value > rule.least) : !(value >= rule.least))
    at.fail(kind + (rule.above ? "> " : ">= ") + bound(rule.least, rule.whole));
  if (!unbounded && (rule.below ? !(value < rule.most) : !(value <= rule.most)))
    at.fail(kind + (rule.below ? "< " : "<= ") + bound(rule.most, rule.whole));
  if (rule.whole) *whole_rule(made, rule.name) = int32_t(value);
  else *real_rule(made, rule.name) = value;
}

inline Fields rule_fields(Rules& to) {
  Fields made;
  for (const tables::Rule& rule : tables::rules)
    made.push_back({rule.name, [&to, &rule](const Place& p) { read_rule(p, rule, to); }, rule.json});
  return made;
}

// What is out of range although its text is not: a number that is not finite.
inline void check_finite(const Rules& rules) {
  std::vector<Problem> problems = find_wrong_rules(rules);
  if (!problems.empty()) throw Error({problems[0]});
}

inline Variable read_variable(const Place& p) {
  Variable v;
  p.object({field("name", v.name), field("kind", v.kind), field("base", v.base), field("sub_batch", v.sub_batch),
            field("size", v.size)});
  return v;
}

inline Parameter read_parameter(const Place& p) {
  Parameter made;
  Place::Field spellings = field("spellings", made.spellings);
  spellings.otherwise = "";
  const auto read_value = [&](const Place& value) {
    const auto real = [](const Place& x) { return x.real(); };
    value.object({field("shape", made.shape), list_field("values", made.values, real)});
  };
  const auto read_range = [&](const Place& range) {
    if (range.is_null()) return;
    made.range.is_set = true;
    const auto bound = [](const char* name, double& to) {
      return Place::Field{name, [&to](const Place& x) { to = x.is_null() ? NAN : x.real("float | null"); }, ""};
    };
    range.object({bound("gt", made.range.gt), bound("ge", made.range.ge), bound("lt", made.range.lt),
                  bound("le", made.range.le)},
                 "object | null");
  };
  p.object({{"variable", [&](const Place& v) { made.variable = read_variable(v); }}, {"value", read_value}, spellings,
            {"range", read_range, ""}});
  return made;
}

inline Solver read_solver(const Place& p) {
  Solver made;
  Fields fields = rule_fields(made.rules);
  fields.push_back(field("name", made.name));
  fields.push_back(field("unknowns", made.unknowns));
  p.object(fields);
  check_finite(made.rules);
  return made;
}

inline Block read_block(const Place& p) {
  Block made;
  p.object({field("output", made.output), field("input", made.input),
            field("batch_independent", made.batch_independent)});
  return made;
}

inline std::shared_ptr<Description> read_description(const Place& p);

inline Part read_part(const Place& p) {
  Part made;
  const auto read_role = [&](const Place& x) { made.role = x.choice({"old", "new", "carried"}); };
  p.object({field("name", made.name), {"role", read_role}, field("other", made.other)});
  return made;
}

inline GraphSegment read_graph_segment(const Place& p) {
  GraphSegment s;
  if (p.json().type != Json::object) p.mistyped("object");
  if (!p.holds("segment")) p.fail("Object missing required field `segment`");
  const std::string kind = p["segment"].text();
  if (kind != "forward" && kind != "implicit") p["segment"].fail("Invalid value '" + kind + "'");
  s.implicit = kind == "implicit";
  Fields fields = {{"segment", [](const Place&) {}}, field("reads", s.reads), field("gives", s.gives)};
  const auto add = [&](const Fields& more) { fields.insert(fields.end(), more.begin(), more.end()); };
  if (!s.implicit) {
    add({field("value", s.value), file_field("jvp", s.jvp), list_field("slopes", s.slopes, read_block)});
  } else {
    Place::Field level = field("level", s.level), parts = list_field("parts", s.parts, read_part);
    level.otherwise = "0", parts.otherwise = "[]";
    const auto read_inner = [&](const Place& x) { s.inner = x.is_null() ? nullptr : read_description(x); };
    const auto read_rules = [&](const Place& x) {
      x.object(rule_fields(s.rules));
      check_finite(s.rules);
    };
    fields.insert(fields.begin(), field("name", s.name));
    add({file_field("rhs", s.rhs), file_field("step", s.step), file_field("ift", s.ift), {"inner", read_inner},
         field("columns", s.columns), file_field("predictor", s.predictor), field("guesses", s.guesses),
         {"rules", read_rules}, level, parts});
  }
  p.object(fields);
  return s;
}

inline GraphValue read_graph_value(const Place& p) {
  GraphValue made;
  p.object({field("name", made.name), field("kind", made.kind), {"axes", [](const Place& x) { x.words(); }},
            field("sizes", made.sizes), field("base", made.base)});
  return made;
}

inline std::shared_ptr<Description> read_description(const Place& p) {
  auto d = std::make_shared<Description>();
  const auto read_given = [&](const Place& x) {
    for (const auto& [name, given] : x.words_by_name()) d->given[name] = given;
  };
  p.object({field("dtype", d->dtype), list_field("values", d->values, read_graph_value), field("inputs", d->inputs),
            field("parameters", d->parameters), {"given", read_given}, field("outputs", d->outputs),
            list_field("segments", d->segments, read_graph_segment), list_field("slopes", d->slopes, read_block)},
           "object | null");
  return d;
}

// The segments of a function that sums over points, which are not run here.
inline int read_cut(const Place& p) {
  const auto words = [](const Place& x) { x.words(); };
  const auto wholes = [](const Place& x) { x.wholes(); };
  const auto text = [](const Place& x) { x.text(); };
  const auto whole = [](const Place& x) { x.whole(); };
  const auto read_value = [=](const Place& x) {
    x.object({{"name", text}, {"sizes", wholes}, {"base", wholes}, {"sources", words}});
    return 0;
  };
  const auto read_rule_of_points = [](const Place& x) {
    if (!x.is_null()) x.choice({"sum", "mean", "spread sum", "spread mean", "fit", "collect"}, "str | null");
  };
  const auto read_step = [=](const Place& x) {
    x.object({{"reads", words}, {"gives", words}, {"rule", read_rule_of_points, "null"}, {"dim", whole, "0"},
              {"like", words, "[]"}, {"solves", words, "[]"}});
    return 0;
  };
  const auto read_level = [=](const Place& x) {
    x.object({{"sources", words}, {"dim", whole}, {"what", text}});
    return 0;
  };
  p.object({{"values", [=](const Place& x) { x.list(read_value); }},
            {"given", [](const Place& x) { x.words_by_name(); }},
            {"inputs", whole},
            {"outputs", words},
            {"steps", [=](const Place& x) { x.list(read_step); }},
            {"levels", [=](const Place& x) { x.table(read_level); }}});
  return 0;
}

inline Segment read_segment(const Place& p) {
  Segment made;
  const auto read_kind = [&](const Place& x) { made.kind = x.choice({"forward", "implicit", "reduction"}); };
  p.object({{"kind", read_kind}, field("name", made.name), field("reads", made.reads), field("gives", made.gives)});
  return made;
}

inline std::shared_ptr<Kernel> read_kernel(const Place& p) {
  if (p.is_null()) return nullptr;
  auto made = std::make_shared<Kernel>();
  const auto read_header = [&](const Place& x) { made->header = x.text_or_none(), made->has_header = !x.is_null(); };
  const auto read_umat = [&](const Place& x) { made->umat = x.text_or_none(), made->has_umat = !x.is_null(); };
  p.object({{"libraries", [&](const Place& x) { made->libraries = x.words_by_name(); }},
            field("source", made->source), {"header", read_header}, field("prefix", made->prefix),
            {"umat", read_umat, ""}},
           "object | null");
  return made;
}

inline Metadata read_metadata(Json& json) {
  Metadata m;
  const auto text = [](const Place& x) { x.text(); };
  const auto digest = [](const Place& x) { return x.digest(); };
  const auto read_origin = [&](const Place& p) {
    p.object({{"file", text}, {"digest", text}, {"overrides", [](const Place& x) { x.words(); }},
              field("command", m.command), {"laws", [](const Place& x) { x.words_by_name(); }, ""},
              {"program", [&](const Place& x) { m.program = x.text(); }, ""}});
  };
  Place(json, "$").object({
      {"format", text, ""},
      {"schema_version", [](const Place& x) { x.whole(); }, ""},
      field("name", m.name),
      {"device", [&](const Place& x) { m.device = x.choice({"cpu", "cuda"}); }},
      {"dtype", [&](const Place& x) { m.dtype = x.choice({"float64", "float32"}); }},
      list_field("inputs", m.inputs, read_variable),
      list_field("outputs", m.outputs, read_variable),
      list_field("parameters", m.parameters, read_parameter),
      list_field("constants", m.constants, read_parameter),
      list_field("solvers", m.solvers, read_solver),
      list_field("segments", m.segments, read_segment),
      list_field("derivatives", m.derivatives, read_block),
      {"adjoints", [&](const Place& x) { m.adjoints = x.truth(); }, "false"},
      {"cuts", [&](const Place& x) { m.sums = !x.table(read_cut).empty(); }, "{}"},
      {"kernel", [&](const Place& x) { m.kernel = read_kernel(x); }},
      {"inductor", [&](const Place& x) { m.inductor = x.is_null() ? nullptr : read_description(x); }},
      field("torch_version", m.torch_version),
      {"origin", read_origin},
      {"digests", [&](const Place& x) { m.digests = x.table(digest); }},
      {"seal", digest, ""},
  });
  return m;
}

// A text as JSON writes it: what must be escaped, and no more.
inline std::string write_text(const std::string& text) {
  std::string made = "\"";
  const char* digits = "0123456789abcdef";
  for (const char c : text) {
    const size_t which = std::string("\"\\\b\f\n\r\t").find(c);
    if (which != std::string::npos) made += '\\', made += "\"\\bfnrt"[which];
    else if (static_cast<unsigned char>(c) < 0x20) made += "\\u00", made += digits[c >> 4], made += digits[c & 15];
    else made += c;
  }
  return made + '"';
}

// A document as one line, keys in order: what digests are taken of.
inline void write_sorted(const Json& json, std::string& to) {
  const auto each = [&](size_t count, auto put) {
    for (size_t i = 0; i < count; ++i) {
      if (i) to += ',';
      put(i);
    }
  };
  switch (json.type) {
    case Json::null: to += "null"; break;
    case Json::boolean: to += json.truth ? "true" : "false"; break;
    case Json::number: to += json.raw; break;
    case Json::string: to += write_text(json.text); break;
    case Json::array:
      to += '[';
      each(json.items.size(), [&](size_t i) { write_sorted(json.items[i], to); });
      to += ']';
      break;
    case Json::object: {
      std::map<std::string, size_t> order;
      for (size_t i = 0; i < json.keys.size(); ++i) order[json.keys[i]] = i;
      to += '{';
      auto at = order.begin();
      each(order.size(), [&](size_t) {
        to += write_text(json.keys[at->second]) + ':';
        write_sorted(json.items[at->second], to);
        ++at;
      });
      to += '}';
    }
  }
}

// Fields that were added later, left out where they hold nothing: so Python writes them.
inline void leave_out_empty(Json& json) {
  const auto leave_out = [](Json& from, const char* key) {
    const Json* held = from.find(key);
    if (!held || held->type == Json::string || !held->items.empty()) return;
    for (size_t i = from.keys.size(); i-- > 0;) {
      if (from.keys[i] != key) continue;
      const auto at = std::ptrdiff_t(i);
      from.keys.erase(from.keys.begin() + at);
      from.items.erase(from.items.begin() + at);
    }
  };
  for (size_t i = 0; i < json.keys.size(); ++i) {
    Json& held = json.items[i];
    if (json.keys[i] == "kernel") leave_out(held, "umat");
    if (json.keys[i] == "origin") {
      leave_out(held, "laws");
      Json* program = held.find("program");
      if (program && program->text.empty()) program->type = Json::null, leave_out(held, "program");
    }
    if (json.keys[i] == "parameters" || json.keys[i] == "constants")
      for (Json& each : held.items) {
        leave_out(each, "spellings");
        if (Json* range = each.find("range"); range && range->type == Json::null) leave_out(each, "range");
        else if (range)
          for (const char* bound : {"gt", "ge", "lt", "le"})
            if (const Json* x = range->find(bound); x && x->type == Json::null) leave_out(*range, bound);
      }
  }
}

// The digest of what metadata says of the code that was compiled with it.
inline std::string compute_contract(Json json) {
  const auto put = [&](const char* key, Json value) {
    for (size_t i = json.keys.size(); i-- > 0;)
      if (json.keys[i] == key) {
        json.items[i] = std::move(value);
        return;
      }
    json.keys.push_back(key), json.items.push_back(std::move(value));
  };
  Json blank, none, table;
  blank.type = none.type = Json::string, table.type = Json::object;
  blank.text = std::string(64, '0');
  put("digests", table), put("seal", blank), put("torch_version", none);
  leave_out_empty(json);
  std::string text;
  write_sorted(json, text);
  return sha256(text);
}

// Whether the seal of metadata is the digest of its own text with zeros in that place.
inline bool is_sealed(const std::string& text) {
  for (size_t at = text.rfind("\"seal\""); at != std::string::npos;
       at = at ? text.rfind("\"seal\"", at - 1) : std::string::npos) {
    const auto skip = [&](size_t i) { return std::min(text.find_first_not_of(" \t\r\n\f\v", i), text.size()); };
    size_t i = skip(at + 6);
    if (i >= text.size() || text[i] != ':') continue;
    i = skip(i + 1);
    if (i >= text.size() || text[i] != '"' || text.size() - i < 66 || text[i + 65] != '"') continue;
    const std::string held = text.substr(i + 1, 64);
    if (held.find_first_not_of("0123456789abcdef") != std::string::npos) continue;
    return sha256(text.substr(0, i + 1) + std::string(64, '0') + text.substr(i + 65)) == held;
  }
  return false;
}

inline bool parse_lag(const std::string& name, std::string& base, int64_t& back) {
  const size_t mark = name.find('~');
  const std::string count = mark == std::string::npos ? "" : name.substr(mark + 1);
  const bool counted =
      !count.empty() && count.size() <= 9 && count.find_first_not_of("0123456789") == std::string::npos;
  base = counted ? name.substr(0, mark) : name;
  back = counted ? std::strtoll(count.c_str(), nullptr, 10) : 0;
  return counted;
}

inline int64_t product(const Shape& shape) {  // one that no 64 bits hold is as good as the largest
  int64_t n = 1;
  for (int64_t each : shape) {
    if (each == 0) return 0;
    if (each < 0 || n > INT64_MAX / each) return INT64_MAX;
    n *= each;
  }
  return n;
}

// All that a loader would stumble over, or compute wrong numbers from.
class Consistency {
 public:
  static std::vector<std::string> find(const Metadata& meta) {
    Consistency made;
    made.check(meta);
    return made.found_;
  }

 private:
  using Names = std::vector<std::string>;
  std::vector<std::string> found_;

  void say(const std::string& key, Values values = {}) { found_.push_back(word(key, values)); }
  void twice(const std::string& what, const Names& names) {
    Names done;
    for (const std::string& name : names) {
      const auto count = std::count(names.begin(), names.end(), name);
      if (count > 1 && !has(done, name))
        say("twice", {{"what", what}, {"name", name}, {"count", std::to_string(count)}});
      done.push_back(name);
    }
  }
  void unknown(const std::string& where, const Names& names, const std::set<std::string>& known) {
    for (const std::string& name : names)
      if (!known.count(name)) say("not there", {{"where", where}, {"name", name}});
  }
  template <class T, class Get> static Names names_of(const std::vector<T>& row, Get get) {
    Names made;
    for (const T& each : row) made.push_back(get(each));
    return made;
  }
  static std::set<std::string> set_of(const Names& names) { return {names.begin(), names.end()}; }
  static Names plus(Names a, const Names& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  void check_variable(const Variable& v) {
    const tables::Kind* kind = nullptr;
    for (const tables::Kind& each : tables::kinds)
      if (v.kind == each.name) kind = &each;
    if (!kind) say("kind", {{"name", v.name}, {"kind", v.kind}});
    else if (const Shape wanted(kind->base, kind->base + kind->rank); v.base != wanted)
      say("base", {{"name", v.name}, {"base", tuple(v.base)}, {"kind", v.kind}, {"wanted", tuple(wanted)}});
    bool small = false;
    for (int64_t n : v.sub_batch) small |= n < 1;
    if (small || v.size != product(v.shape()))
      say("size",
          {{"name", v.name}, {"size", std::to_string(v.size)}, {"axes", tuple(v.sub_batch)}, {"base", tuple(v.base)}});
  }

  void check_value(const Parameter& p) {
    const Shape own = p.variable.shape();
    bool fits =
        p.shape.size() >= own.size() &&
        std::equal(own.begin(), own.end(), p.shape.end() - std::ptrdiff_t(std::min(own.size(), p.shape.size())));
    for (int64_t n : p.shape) fits &= n >= 0;
    if (!fits || product(p.shape) != int64_t(p.values.size()))
      say("value", {{"name", p.variable.name}, {"shape", tuple(p.shape)}, {"count", std::to_string(p.values.size())}});
  }

  void check(const Metadata& meta) {
    const auto name = [](const auto& x) { return x.name; };
    const auto of = [](const Parameter& x) { return x.variable.name; };
    for (const Variable& v : meta.inputs) check_variable(v);
    for (const Variable& v : meta.outputs) check_variable(v);
    for (const Parameter& p : meta.parameters) check_variable(p.variable);
    for (const Parameter& p : meta.constants) check_variable(p.variable);
    for (const Parameter& p : meta.parameters) check_value(p);
    for (const Parameter& p : meta.constants) check_value(p);
    const Names inputs = names_of(meta.inputs, name), outputs = names_of(meta.outputs, name),
                given = names_of(meta.parameters, of);
    const Names constants = names_of(meta.constants, of), solves = names_of(meta.solvers, name);
    twice("input", plus(inputs, given));
    twice("constant", constants);
    twice("output", outputs);
    twice("solver", solves);
    twice("derivative", names_of(meta.derivatives, [](const Block& b) { return b.output + ":" + b.input; }));
    for (const Block& b : meta.derivatives) {
      const std::string where = word("derivative", {{"name", b.output}});
      unknown(where, {b.output}, set_of(outputs));
      unknown(where, {b.input}, set_of(plus(inputs, given)));
    }
    std::set<std::string> known = set_of(plus(plus(inputs, given), constants)), made, inside;
    for (const Segment& s : meta.segments) made.insert(s.gives.begin(), s.gives.end());
    for (const std::string& each : known)
      if (made.count(each)) inside.insert(each + " given");
    known.insert(inside.begin(), inside.end());
    Names implicit;
    for (const Segment& s : meta.segments) {
      unknown(word("segment", {{"name", s.name}}), s.reads, known);
      known.insert(s.gives.begin(), s.gives.end());
      if (s.kind == "implicit") implicit.push_back(s.name);
    }
    unknown(word("outputs"), outputs, known);
    bool agree = solves.empty() == implicit.empty() || meta.segments.size() == 1;
    for (const std::string& n : implicit) agree &= has(solves, n);
    if (!agree) say("implicit");
    for (const Solver& s : meta.solvers)
      if (s.unknowns.empty()) say("unknowns", {{"name", s.name}});
    if (!meta.kernel && !meta.inductor) say("backend");
    if (meta.inductor && meta.device != "cpu") say("graphs device", {{"device", meta.device}});
    if (meta.adjoints && !meta.kernel) say("adjoints");
    if (meta.kernel) check_kernel(meta);
    if (meta.inductor) check_graphs(meta, *meta.inductor);
  }

  void check_kernel(const Metadata& meta) {
    if (meta.kernel->libraries.empty()) say("library");
    if (!meta.kernel->has_header != (meta.device == "cuda"))
      say("header", {{"device", meta.device}, {"has", meta.device == "cpu" ? "lacks" : "has"}});
    if (meta.device != "cuda") return;
    for (const auto& [target, file] : meta.kernel->libraries) {
      const size_t cut = target.rfind('_');
      const std::string kind = cut == std::string::npos ? "" : target.substr(0, cut),
                        number = target.substr(cut == std::string::npos ? 0 : cut + 1);
      if ((kind != "sm" && kind != "compute") || number.empty() ||
          number.find_first_not_of("0123456789") != std::string::npos)
        say("architecture", {{"name", target}});
    }
  }

  static Names value_names(const Description& d) {
    return names_of(d.values, [](const GraphValue& v) { return v.name; });
  }

  void check_graphs(const Metadata& meta, const Description& d) {
    if (d.dtype != meta.dtype) say("graphs dtype", {{"dtype", d.dtype}});
    std::map<std::string, const GraphValue*> values;
    for (const GraphValue& v : d.values) values[v.name] = &v;
    std::map<std::string, std::string> names;
    const Names own = plus(d.inputs, d.parameters);
    for (const std::string& n : own) names[d.given.count(n) ? d.given.at(n) : n] = n;
    twice("value", value_names(d));
    Names given;
    for (const auto& [n, shown] : d.given) given.push_back(n);
    unknown(word("given names"), given, set_of(own));
    std::vector<const Variable*> wanted;
    for (const Variable& v : meta.inputs) wanted.push_back(&v);
    for (const Parameter& p : meta.parameters) wanted.push_back(&p.variable);
    for (const Parameter& p : meta.constants) wanted.push_back(&p.variable);
    Names a, b, taken;
    for (const auto& [shown, n] : names) a.push_back(shown), taken.push_back(n);
    for (const Variable* v : wanted) b.push_back(v->name);
    std::sort(b.begin(), b.end());
    if (a != b) say("graphs inputs");
    if (d.outputs != names_of(meta.outputs, [](const Variable& v) { return v.name; })) say("graphs outputs");
    unknown(word("graphs"), plus(taken, d.outputs), set_of(value_names(d)));
    for (const Variable& v : meta.outputs) wanted.push_back(&v);
    for (const Variable* v : wanted) {
      const auto at = values.find(names.count(v->name) ? names[v->name] : v->name);
      if (at == values.end()) continue;
      const GraphValue& inner = *at->second;
      if (inner.kind != v->kind || inner.sizes != v->sub_batch || inner.base != v->base)
        say("graphs shape", {{"name", v->name}});
    }
    const auto same = [](const Block& x, const Block& y) {
      return x.output == y.output && x.input == y.input && x.batch_independent == y.batch_independent;
    };
    if (!std::equal(d.slopes.begin(), d.slopes.end(), meta.derivatives.begin(), meta.derivatives.end(), same))
      say("graphs derivatives");
    Names solves;
    d.list_solves(solves);
    if (solves != names_of(meta.solvers, [](const Solver& s) { return s.name; })) say("graphs solves");
    run(d);
  }

  void run(const Description& d) {
    const std::set<std::string> values = set_of(value_names(d));
    std::set<std::string> known = set_of(plus(d.inputs, d.parameters));
    for (const GraphSegment& s : d.segments) {
      unknown(word("graphs segment"), s.reads, known);
      known.insert(s.gives.begin(), s.gives.end());
      unknown(word("graphs segment"), s.gives, values);
      if (!s.implicit) {
        for (const Block& slope : s.slopes) {
          unknown(word("slope"), {slope.output}, set_of(s.gives));
          unknown(word("slope"), {slope.input}, set_of(s.reads));
        }
        continue;
      }
      unknown(word("a solve"), plus(s.columns, s.guesses), set_of(s.reads));
      if (s.inner) check_residuals(s, *s.inner, d);
      else if (s.rhs.empty() || s.step.empty() || s.ift.empty() != s.columns.empty())
        say("solve graph", {{"name", s.name}});
      if (s.predictor.empty() == s.guesses.empty() || (!s.guesses.empty() && s.guesses.size() != s.gives.size()))
        say("solve guess", {{"name", s.name}});
    }
    unknown(word("graphs"), d.outputs, known);
  }

  void check_residuals(const GraphSegment& s, const Description& d, const Description& around) {
    std::map<std::string, int64_t> sizes;
    for (const GraphValue& v : around.values) sizes[v.name] = v.width();
    for (const GraphValue& v : d.values) sizes[v.name] = v.width();
    const size_t count = std::min(s.gives.size(), d.inputs.size());
    const auto cut = d.inputs.begin() + std::ptrdiff_t(count);
    const Names unknowns(d.inputs.begin(), cut), rest(cut, d.inputs.end());
    const auto widths = [&](const Names& names) {
      Shape made;
      for (const std::string& n : names) made.push_back(sizes.count(n) ? sizes[n] : 0);
      return made;
    };
    const auto sum = [](const Shape& x) {
      int64_t n = 0;
      for (int64_t each : x) n += each;
      return n;
    };
    if (d.outputs.size() != s.gives.size() || widths(s.gives) != widths(unknowns) ||
        sum(widths(d.outputs)) != sum(widths(s.gives)))
      say("solve residual", {{"name", s.name}});
    unknown(word("residuals", {{"name", s.name}}), plus(rest, d.parameters), set_of(s.reads));
    std::set<std::string> wanted, have;
    for (const std::string& r : d.outputs)
      for (const std::string& x : plus(unknowns, s.columns)) wanted.insert(r + "\n" + x);
    for (const Block& b : d.slopes) have.insert(b.output + "\n" + b.input);
    if (wanted != have) say("solve derivatives", {{"name", s.name}});
    run(d);
  }
};

}  // namespace detail
}  // namespace ingot
