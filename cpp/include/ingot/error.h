// What can go wrong, and how to mend it: one exception, whose text is that of Python.
#pragma once
#include <algorithm>
#include <exception>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tables.h"

namespace ingot {

// A place in a user's file; lines and columns count from 1.
struct Span {
  std::string file;
  int line = 0, column = 0, length = 0;
  std::string block, text;
};

// One thing that is wrong: what, where and how to mend it.
struct Problem {
  std::string code, message, fix;
  Span span{};

  std::string text() const {
    std::string told = "error[" + code + "]: " + message;
    if (!span.line) return fix.empty() ? told : told + "\n  fix: " + fix;
    told += "\n  --> " + span.file + ":" + std::to_string(span.line);
    if (span.column) told += ":" + std::to_string(span.column);
    if (!span.block.empty()) told += " in [" + span.block + "]";
    if (span.text.find_first_not_of(" \t\r\n") == std::string::npos)
      return fix.empty() ? told : told + "\n  fix: " + fix;
    const std::string number = std::to_string(span.line), blank(number.size(), ' ');
    std::string margin;
    for (int i = 0; i + 1 < span.column && i < int(span.text.size()); ++i)
      margin += span.text[size_t(i)] == '\t' ? '\t' : ' ';
    std::string marks(size_t(span.length), '^');
    if (!fix.empty()) marks += (marks.empty() ? "" : " ") + fix;
    told += "\n" + number + " | " + span.text;
    return marks.empty() ? told : told + "\n" + blank + " | " + margin + marks;
  }
};

// All problems of a package or a call.
class Error : public std::exception {
 public:
  explicit Error(std::vector<Problem> problems) : problems_(std::move(problems)) {
    std::stable_sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
      return std::tie(a.span.file, a.span.line, a.span.column) < std::tie(b.span.file, b.span.line, b.span.column);
    });
    for (const Problem& each : problems_) text_ += (text_.empty() ? "" : "\n\n") + each.text();
  }

  const char* what() const noexcept override { return text_.c_str(); }
  const std::vector<Problem>& problems() const noexcept { return problems_; }
  const std::string& code() const noexcept { return problems_.front().code; }  // that of the first

 private:
  std::vector<Problem> problems_;
  std::string text_;
};

namespace detail {

using Values = std::initializer_list<std::pair<const char*, std::string>>;

// A text with its words in braces filled in.
inline std::string fill(const std::string& text, Values values) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t end = text[i] == '{' ? text.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      made += text[i];
      continue;
    }
    const std::string key = text.substr(i + 1, end - i - 1);
    for (const auto& [name, value] : values)
      if (key == name) made += value;
    i = end;
  }
  return made;
}

// The problem of that key, which speaks of these values.
inline Problem tell(const std::string& key, Values values, Span span = {}) {
  for (const tables::Message& each : tables::messages)
    if (key == each.key) return {each.code, fill(each.text, values), fill(each.fix, values), std::move(span)};
  return {"wrong-input", key, "", std::move(span)};
}

inline Error refuse(const std::string& key, Values values, Span span = {}) {
  return Error({tell(key, values, std::move(span))});
}

inline void raise_if(std::vector<Problem> problems) {
  if (!problems.empty()) throw Error(std::move(problems));
}

// What metadata says that does not agree with itself.
inline std::string word(const std::string& key, Values values = {}) {
  for (const tables::Word& each : tables::inconsistent)
    if (key == each.key) return fill(each.text, values);
  return key;
}

inline std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return text;
}

// How many letters two words share in order, as Python's difflib counts: the longest common run, then
// what lies left and right of it.
inline size_t count_matches(const std::string& a, const std::string& b, size_t a0, size_t a1, size_t b0, size_t b1) {
  size_t at = a0, bt = b0, best = 0;
  std::vector<size_t> row(b1 + 1, 0), next;
  for (size_t i = a0; i < a1; ++i) {
    next.assign(b1 + 1, 0);
    for (size_t j = b0; j < b1; ++j) {
      if (a[i] != b[j]) continue;
      const size_t k = next[j + 1] = row[j] + 1;
      if (k > best) at = i + 1 - k, bt = j + 1 - k, best = k;
    }
    row.swap(next);
  }
  if (!best) return 0;
  return best + count_matches(a, b, a0, at, b0, bt) + count_matches(a, b, at + best, a1, bt + best, b1);
}

// The fix for a misspelt word, if a known one is close.
inline std::string did_you_mean(const std::string& word, std::vector<std::string> known) {
  if (word.size() > 200) return "";
  std::sort(known.begin(), known.end());
  std::map<std::string, std::string> by_lower;
  for (const std::string& name : known) by_lower[lower(name)] = name;
  const std::string given = lower(word);
  for (const tables::Meant& each : tables::meant)
    if (const auto at = by_lower.find(each.means); given == each.word && at != by_lower.end())
      return "did you mean '" + at->second + "'?";
  const std::string* meant = nullptr;
  double best = 0.6;
  for (const auto& [low, name] : by_lower) {  // in order: of equals the last counts
    const size_t letters = low.size() + given.size();
    const double share =
        letters ? 2.0 * double(count_matches(low, given, 0, low.size(), 0, given.size())) / double(letters) : 1.0;
    if (share >= best) best = share, meant = &name;
  }
  return meant ? "did you mean '" + *meant + "'?" : "";
}

inline std::string join(const std::vector<std::string>& words, const std::string& between = ", ") {
  std::string made;
  for (size_t i = 0; i < words.size(); ++i) made += (i ? between : "") + words[i];
  return made;
}

inline bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A problem where a word is none of the choices.
inline void find_no_choice(const std::string& name, const std::string& word, const std::vector<std::string>& choices,
                           std::vector<Problem>& problems, Span span = {}) {
  if (std::find(choices.begin(), choices.end(), word) != choices.end()) return;
  std::string fix = did_you_mean(word, choices);
  if (fix.empty()) fix = "give one of: " + join(choices);
  problems.push_back(
      tell("no choice", {{"name", name}, {"choices", join(choices)}, {"word", word}, {"fix", fix}}, std::move(span)));
}

// A shape as Python prints a tuple.
template <class T> std::string tuple(const std::vector<T>& shape) {
  std::string made = "(";
  for (size_t i = 0; i < shape.size(); ++i) made += (i ? ", " : "") + std::to_string(shape[i]);
  return made + (shape.size() == 1 ? ",)" : ")");
}

// A word as Python's repr prints it.
inline std::string quote(const std::string& text) {
  const char mark = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string made(1, mark);
  const char* digits = "0123456789abcdef";
  for (unsigned char c : text) {
    if (c == '\\' || c == static_cast<unsigned char>(mark)) made += '\\', made += char(c);
    else if (c == '\n') made += "\\n";
    else if (c == '\r') made += "\\r";
    else if (c == '\t') made += "\\t";
    else if (c < 0x20 || c == 0x7f) made += "\\x", made += digits[c >> 4], made += digits[c & 15];
    else made += char(c);
  }
  return made + mark;
}

}  // namespace detail
}  // namespace ingot
