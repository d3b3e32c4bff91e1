// A stub: an input file in which a package stands for the model, and the rules of its solves.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "files.h"

namespace ingot {
namespace detail {

struct StubField {
  std::string name, text;
  Span span;   // of the whole line from the name on
  Span value;  // of what it is set to
};

struct StubBlock {
  std::string name, path;
  std::vector<StubField> fields;
  std::vector<StubBlock> blocks;
  Span span;

  const StubField* field(const std::string& wanted) const {
    for (const StubField& each : fields)
      if (each.name == wanted) return &each;
    return nullptr;
  }
  const StubField& require(const std::string& wanted) const {
    if (const StubField* found = field(wanted)) return *found;
    const StubField* type = field("type");
    throw refuse("missing option", {{"title", type ? type->text : "[" + path + "]"}, {"name", wanted}}, span);
  }
};

// Reads blocks, fields, quotes and comments of HIT; what a stub never holds it refuses.
class StubReader {
 public:
  StubReader(std::string file, const std::string& text) : file_(std::move(file)), text_(text) {}

  StubBlock read() {
    StubBlock top;
    read_into(top, 0);
    return top;
  }

 private:
  std::string file_;
  const std::string& text_;
  size_t at_ = 0;

  int line_of(size_t at) const { return 1 + int(std::count(text_.begin(), text_.begin() + std::ptrdiff_t(at), '\n')); }
  Span span_of(size_t begin, size_t end, const std::string& block) const {
    const size_t start = begin ? text_.rfind('\n', begin - 1) + 1 : 0,
                 stop = std::min(text_.find('\n', begin), text_.size());
    return {file_,
            line_of(begin),
            int(begin - start) + 1,
            int(std::min(end, stop) - begin),
            block,
            text_.substr(start, stop - start)};
  }
  [[noreturn]] void fail(const std::string& told) const {
    throw refuse("stub syntax",
                 {{"file", file_}, {"line", std::to_string(line_of(std::min(at_, text_.size())))}, {"told", told}});
  }
  [[noreturn]] void beyond(const std::string& what) const {
    throw refuse("stub beyond",
                 {{"file", file_}, {"line", std::to_string(line_of(std::min(at_, text_.size())))}, {"what", what}});
  }

  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') ++at_;
      else return;
    }
  }

  void read_into(StubBlock& block, int depth) {
    if (depth > 50) fail("blocks stand too deep");
    while (true) {
      skip();
      if (at_ >= text_.size()) {
        if (depth) fail("a block does not end");
        return;
      }
      if (text_[at_] == '!') beyond("!include");
      if (text_[at_] != '[') {
        read_field(block);
        continue;
      }
      const size_t begin = at_, end = text_.find_first_of("]\n", at_);
      if (end == std::string::npos || text_[end] != ']') fail("a bracket is not closed");
      std::string name = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      if (name.empty() || name == "../") {
        if (!depth) fail("a block ends that did not begin");
        return;
      }
      if (name.rfind("./", 0) == 0) name = name.substr(2);
      StubBlock inner;
      inner.name = name, inner.path = block.path.empty() ? name : block.path + "/" + name,
      inner.span = span_of(begin, at_, inner.path);
      read_into(inner, depth + 1);
      block.blocks.push_back(std::move(inner));
    }
  }

  void read_field(StubBlock& block) {
    const size_t begin = at_, end = text_.find_first_of("=\n[", at_);
    if (end == std::string::npos || text_[end] != '=')
      fail("'" + text_.substr(begin, std::min<size_t>(end - begin, 40)) + "' is no option");
    std::string name = text_.substr(begin, end - begin);
    name.erase(name.find_last_not_of(" \t:") + 1);
    at_ = text_.find_first_not_of(" \t", end + 1);
    if (at_ == std::string::npos) at_ = text_.size();
    StubField field;
    field.name = name;
    const size_t from = at_;
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
      const size_t close = text_.find(text_[at_], at_ + 1);
      if (close == std::string::npos) fail("a quote is not closed");
      field.text = text_.substr(at_ + 1, close - at_ - 1);
      at_ = close + 1;
    } else {
      const size_t close = std::min(text_.find_first_of("\n#", at_), text_.size());
      field.text = text_.substr(at_, close - at_);
      field.text.erase(field.text.find_last_not_of(" \t\r") + 1);
      at_ = from + field.text.size();
    }
    if (field.text.find("${") != std::string::npos) beyond("${...}");
    field.span = span_of(begin, begin + name.size(), block.path);
    field.value = span_of(from, at_, block.path);
    block.fields.push_back(std::move(field));
  }
};

// A package that a stub names, and what the stub says of its solves.
struct Stub {
  std::string place;
  StubBlock model;
  std::vector<StubBlock> solvers;
};

// The fix for a word that is not known.
inline std::string choose(const std::string& word, std::vector<std::string> known) {
  const std::string fix = did_you_mean(word, known);
  if (!fix.empty()) return fix;
  std::sort(known.begin(), known.end());
  return !known.empty() && known.size() <= 8 ? "choose one of: " + join(known) : "remove it";
}

// All options and sub-blocks of a block that are not known.
inline void find_unknown(const StubBlock& block, const std::vector<std::string>& known,
                         std::vector<Problem>& problems) {
  const StubField* type = block.field("type");
  const std::string title = type && !type->text.empty() ? type->text : "[" + block.path + "]";
  for (const StubField& each : block.fields)
    if (!has(known, each.name))
      problems.push_back(tell("unknown option",
                              {{"title", title}, {"name", each.name}, {"fix", choose(each.name, known)}}, each.span));
  for (const StubBlock& each : block.blocks)
    problems.push_back(
        tell("unknown block", {{"title", title}, {"name", each.name}, {"fix", "remove it"}}, each.span));
}

inline Stub read_stub(const std::string& given) {
  const std::string file = plain_path(given);
  std::string text;
  std::error_code wrong;
  if (!fs::is_regular_file(file, wrong) || !read_file(file, text)) {
    std::vector<std::string> beside;
    const fs::path parent = fs::path(file).parent_path();
    for (fs::directory_iterator at(parent.empty() ? fs::path(".") : parent, wrong), end; !wrong && at != end;
         at.increment(wrong))
      beside.push_back(at->path().filename());
    throw refuse("no stub file", {{"file", file}, {"fix", did_you_mean(fs::path(file).filename(), beside)}});
  }
  const StubBlock top = StubReader(file, text).read();
  Stub made;
  std::vector<StubBlock> models;
  for (const StubBlock& part : top.blocks) {
    if (part.name == "Models") models.insert(models.end(), part.blocks.begin(), part.blocks.end());
    if (part.name == "Solvers") made.solvers.insert(made.solvers.end(), part.blocks.begin(), part.blocks.end());
  }
  const StubField* type = models.size() == 1 ? models[0].field("type") : nullptr;
  if (!type || type->text != "AOTIModel") throw refuse("no stub", {{"file", file}});
  made.model = models[0];
  std::vector<Problem> problems;
  find_unknown(made.model, {"type", "artifact_path", "solver", "solvers", "program"}, problems);
  raise_if(problems);
  const std::string path = made.model.require("artifact_path").text;
  made.place = !path.empty() && path[0] == '/' ? path : (fs::path(file).parent_path() / path).string();
  return made;
}

inline std::string strip(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

// A text on one line, short enough for a message.
inline std::string shorten(const std::string& text) {
  const std::string line = join(split(text), " ");
  return line.size() <= 60 ? line : line.substr(0, 57) + "...";
}

// The part of a span that holds one word, or the whole span where it is not written there.
inline Span word_span(const Span& span, const std::string& word) {
  const std::string ends = " \t\r\n'\";";
  const size_t last = size_t(span.column - 1 + span.length);
  for (size_t at = size_t(span.column - 1); !word.empty() && (at = span.text.find(word, at)) != std::string::npos; ++at) {
    const size_t end = at + word.size();
    if (end > last) break;
    const bool begins = at == size_t(span.column - 1) || ends.find(span.text[at - 1]) != std::string::npos;
    if (!begins || (end < last && ends.find(span.text[end]) == std::string::npos)) continue;
    Span made = span;
    made.column = int(at) + 1, made.length = int(word.size());
    return made;
  }
  return span;
}

// A value, or one word of it, that is not what was expected.
inline Problem wrong_value(const StubField& field, const std::string& expected, const std::string* word,
                           const std::string& fix) {
  const std::string whole = shorten(field.text), found = word ? *word : whole;
  return tell("wrong value",
              {{"name", field.name},
               {"expected", expected},
               {"verb", found == whole ? "is" : "holds"},
               {"shown", found.empty() ? "empty" : "'" + found + "'"},
               {"fix", fix}},
              word_span(field.value, found));
}

// The fix for a number that its unit is written behind.
inline std::string suggest_unit(const std::string& word) {
  size_t end = word.find_last_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
  const std::string plain = "write a number such as 0.3 or 1e-5";
  if (end == std::string::npos || end + 1 == word.size()) return plain;
  const std::string unit = word.substr(end + 1);
  std::string number = word.substr(0, end + 1);
  if (number.back() == '*') number.pop_back();
  const size_t mark = number.find_first_of("eE"), sign = number.find_first_of("+-") == 0 ? 1 : 0;
  const std::string digits = number.substr(sign, mark == std::string::npos ? mark : mark - sign);
  bool right = !digits.empty() && digits.find_first_not_of("0123456789.") == std::string::npos;
  if (mark != std::string::npos) {
    std::string power = number.substr(mark + 1);
    if (!power.empty() && (power[0] == '+' || power[0] == '-')) power.erase(0, 1);
    right = right && number[mark] == 'e' && !power.empty() && power.find_first_not_of("0123456789") == std::string::npos;
  }
  return right ? "write " + number + " alone, or convert it: '${units " + number + " " + unit + " -> Pa}'" : plain;
}

// Whether a word is a number as input files write it: digits, a point, an exponent, or inf and nan.
inline bool is_number(const std::string& word) {
  size_t at = !word.empty() && (word[0] == '+' || word[0] == '-') ? 1 : 0;
  const std::string rest = lower(word.substr(at));
  if (rest == "inf" || rest == "infinity" || rest == "nan") return true;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < word.size() && word[at] >= '0' && word[at] <= '9') ++at;
    return at - begin;
  };
  const size_t before = digits();
  size_t after = 0;
  if (at < word.size() && word[at] == '.') ++at, after = digits();
  if (!before && !after) return false;
  if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
    ++at;
    if (at < word.size() && (word[at] == '+' || word[at] == '-')) ++at;
    if (!digits()) return false;
  }
  return at == word.size();
}

// The number of an option; what is wrong with it is told as Python tells it.
inline bool read_number(const StubField& field, bool whole, double& value, std::vector<Problem>& problems) {
  std::string word = strip(field.text);
  const auto refused = [&](const std::string& expected, const std::string& fix) {
    problems.push_back(wrong_value(field, expected, &word, fix));
    return false;
  };
  const size_t sign = !word.empty() && (word[0] == '+' || word[0] == '-') ? 1 : 0;
  value = std::strtod(word.c_str(), nullptr);
  if (whole) {
    const bool plain = word.size() > sign && word.find_first_not_of("0123456789", sign) == std::string::npos;
    if (!plain && is_number(word) && std::isfinite(value) && value == std::floor(value) && std::fabs(value) < 9e18)
      return refused("an integer", "write " + std::to_string(int64_t(value)));
    if (!plain) return refused("an integer", "write a whole number, without a point or an exponent");
    if (word.size() > 40) return word = shorten(word), refused("an integer", "write at most 40 digits");
    return true;
  }
  if (!is_number(word)) {
    word = shorten(word);
    if (word.find(',') != std::string::npos)
      return refused("a number", "write a point for decimals, and blanks between numbers");
    return refused("a number", suggest_unit(word));
  }
  const bool named = lower(word).find_first_of("in") != std::string::npos;  // inf, nan
  const std::string digits = word.substr(0, word.find_first_of("eE"));
  if ((std::isinf(value) && !named) || (value == 0 && digits.find_first_not_of("+-.0") != std::string::npos))
    return refused("a number", "write a number between 1e-308 and 1e308 in size");
  return true;
}

inline Rules read_newton(const Stub& stub, const std::string& name, const Span& asked) {
  const StubBlock* block = nullptr;
  std::vector<std::string> known;
  for (const StubBlock& each : stub.solvers) {
    known.push_back(each.name);
    if (each.name == name) block = &each;
  }
  if (!block) {
    const std::string fix = did_you_mean(name, known);
    throw refuse("missing block",
                 {{"section", "Solvers"},
                  {"name", name},
                  {"fix", fix.empty() ? "add a block [" + name + "] to [Solvers]" : fix}},
                 asked);
  }
  Rules rules;
  const StubField& type = block->require("type");
  const bool searches = type.text == "NewtonWithLineSearch";
  if (!searches && type.text != "Newton") {
    const std::vector<std::string> types = {"Newton", "NewtonWithLineSearch"};
    const std::string fix = did_you_mean(type.text, types);
    throw refuse("unknown type",
                 {{"what", "nonlinear solver"}, {"name", type.text}, {"fix", fix.empty() ? "one of: " + join(types) : fix}},
                 type.span);
  }
  if (searches) rules.linesearch = backtracking;
  const auto is_search = [](const tables::Rule& rule) {
    return std::string(rule.name).find("linesearch") != std::string::npos;
  };
  std::vector<std::string> options = {"type"};
  for (const bool search : {false, true}) {
    for (const tables::Rule& rule : tables::rules)
      if (is_search(rule) == search && (searches || !search)) options.push_back(rule.option);
    if (!search) options.push_back("linear_solver");
  }
  if (searches) options.push_back("check_negative_criterion");
  std::vector<Problem> problems;
  find_unknown(*block, options, problems);
  const auto choose_word = [&](const StubField& field, std::vector<std::string> choices) {
    find_no_choice(field.name, field.text, choices, problems, field.span);
    return int32_t(std::find(choices.begin(), choices.end(), field.text) - choices.begin());
  };
  for (const std::string& option : options) {
    const StubField* field = block->field(option);
    if (field && option == "check_negative_criterion") choose_word(*field, {"true", "false", "0", "1"});
    for (const tables::Rule& rule : tables::rules) {
      if (!field || option != rule.option) continue;
      std::vector<std::string> choices = split(rule.choices);
      if (!choices.empty()) {
        const bool search = option == "linesearch_type";  // which is one of those that search
        if (search) choices.erase(choices.begin());
        *whole_rule(rules, rule.name) = choose_word(*field, choices) + (search ? 1 : 0);
        continue;
      }
      double value = 0;
      if (!read_number(*field, rule.whole, value, problems)) continue;
      if (!is_lawful(rule, value))
        problems.push_back(
            wrong_value(*field, rule.allowed, nullptr, std::string("write one such as ") + rule.example));
      else if (rule.whole) *whole_rule(rules, rule.name) = int32_t(value);
      else *real_rule(rules, rule.name) = value;
    }
  }
  raise_if(problems);
  return rules;
}

// Refuse a package that is not the one for which its stub was written, where the stub says which.
inline void require_program(const Stub& stub, const Metadata& meta) {
  const StubField* field = stub.model.field("program");
  if (field && !has(split(field->text), meta.program))
    throw refuse("other program", {{"name", meta.name}, {"device", meta.device}, {"again", again_of(meta)}}, field->span);
}

// Put the rules that a stub gives to updates in the place of the package's.
inline void apply_rules(const Stub& stub, Metadata& meta) {
  const StubField *one = stub.model.field("solver"), *each = stub.model.field("solvers");
  std::vector<std::string> updates, chosen;
  for (const Solver& s : meta.solvers) updates.push_back(s.name);
  if (one && each) throw refuse("two ways", {}, one->span);
  if (one)
    for (Solver& s : meta.solvers) s.rules = read_newton(stub, one->text, one->span);
  if (!each) return;
  for (const std::string& word : split(each->text)) {
    const Span span = word_span(each->value, word);
    std::string update = word.substr(0, word.find(':'));
    for (const std::string& name : updates)  // a name may hold a colon: the longest that fits is meant
      if (word.rfind(name + ":", 0) == 0 && (name.size() > update.size() || !has(updates, update))) update = name;
    const std::string solver = word.size() > update.size() ? word.substr(update.size() + 1) : "";
    if (solver.empty())
      throw Error({wrong_value(*each, "pairs such as update:newton", &word, "")});
    if (!has(updates, update)) {
      const std::string fix = did_you_mean(update, updates);
      throw refuse("unknown update",
                   {{"name", update},
                    {"fix", fix.empty() ? "its updates are: " + (updates.empty() ? "none" : join(updates)) : fix}},
                   span);
    }
    if (has(chosen, update)) throw refuse("two solvers", {{"name", update}}, span);
    chosen.push_back(update);
    const Rules rules = read_newton(stub, solver, span);
    for (Solver& s : meta.solvers)
      if (s.name == update) s.rules = rules;
  }
}

}  // namespace detail
}  // namespace ingot
