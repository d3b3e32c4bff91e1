// A reader of JSON. It keeps the text of numbers; what it refuses it tells in the words of Python's
// reader.
#pragma once
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ingot {
namespace detail {

struct Json {
  enum Type { null, boolean, number, string, array, object };
  Type type = null;
  bool truth = false;
  std::string raw;   // the text of a number
  std::string text;  // what a string says; of a bare number its first byte in the document
  std::vector<Json> items;
  std::vector<std::string> keys;  // of an object, in order; the last of equals counts

  const Json* find(const std::string& key) const {
    for (size_t i = keys.size(); i-- > 0;)
      if (keys[i] == key) return &items[i];
    return nullptr;
  }
  Json* find(const std::string& key) { return const_cast<Json*>(static_cast<const Json*>(this)->find(key)); }

  // NaN and Infinity, which JSON does not have and Python's first reader takes.
  bool is_bare() const { return type == number && raw.find_first_of("NI") != std::string::npos; }
  // A number that is not finite as Ingot writes it.
  bool is_wild() const {
    return type == object && keys.size() == 1 && keys[0] == "not finite" && items[0].type == string;
  }
  bool is_whole() const { return type == number && raw.find_first_of(".eENI") == std::string::npos; }
  double real() const { return std::strtod(raw.c_str(), nullptr); }
  int64_t whole() const { return std::strtoll(raw.c_str(), nullptr, 10); }
  bool is_small() const {  // a whole number of 64 bits
    errno = 0;
    (void)whole();
    return is_whole() && errno == 0;
  }
};

struct JsonError {
  std::string told;
};

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Json read() {
    skip();
    Json made = value(0);
    skip();
    if (at_ != text_.size()) fail("Extra data", at_);
    return made;
  }

 private:
  const std::string& text_;
  size_t at_ = 0;
  static constexpr int deepest = 500;

  [[noreturn]] void fail(const std::string& what, size_t at) const {
    size_t line = 1, column = 1, letters = 0;
    for (size_t i = 0; i < at && i < text_.size(); ++i) {
      if ((text_[i] & 0xc0) == 0x80) continue;  // within a letter
      ++letters, ++column;
      if (text_[i] == '\n') ++line, column = 1;
    }
    throw JsonError{what + ": line " + std::to_string(line) + " column " + std::to_string(column) + " (char " +
                    std::to_string(letters) + ")"};
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool is_end() const { return at_ >= text_.size(); }
  void skip() {
    while (!is_end() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) ++at_;
  }
  bool take(const char* word) {
    const size_t n = std::string(word).size();
    if (text_.compare(at_, n, word) != 0) return false;
    at_ += n;
    return true;
  }

  Json value(int depth) {
    if (depth > deepest) throw JsonError{"maximum recursion depth exceeded"};
    Json made;
    const size_t begin = at_;
    if (peek() == '{') return object(depth);
    if (peek() == '[') return array(depth);
    if (peek() == '"') {
      made.type = Json::string;
      made.text = string();
    } else if (take("null")) {
      made.type = Json::null;
    } else if (take("true") || take("false")) {
      made.type = Json::boolean;
      made.truth = text_[begin] == 't';
    } else if (take("NaN") || take("Infinity") || take("-Infinity")) {
      made.type = Json::number;
      made.raw = text_.substr(begin, at_ - begin), made.text = std::to_string(begin);
    } else if (number()) {
      made.type = Json::number;
      made.raw = text_.substr(begin, at_ - begin);
    } else {
      fail("Expecting value", begin);
    }
    return made;
  }

  bool digits() {
    const size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > begin;
  }
  bool number() {
    const size_t begin = at_;
    if (peek() == '-') ++at_;
    if (peek() == '0') ++at_;
    else if (!digits()) return at_ = begin, false;
    size_t kept = at_;
    if (peek() == '.') {
      ++at_;
      if (!digits()) return at_ = kept, true;
      kept = at_;
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) at_ = kept;
    }
    return true;
  }

  Json array(int depth) {
    Json made;
    made.type = Json::array;
    ++at_, skip();
    if (peek() == ']') return ++at_, made;
    while (true) {
      made.items.push_back(value(depth + 1));
      skip();
      if (peek() == ']') return ++at_, made;
      if (peek() != ',') fail("Expecting ',' delimiter", at_);
      ++at_, skip();
    }
  }

  Json object(int depth) {
    Json made;
    made.type = Json::object;
    ++at_, skip();
    if (peek() == '}') return ++at_, made;
    while (true) {
      if (peek() != '"') fail("Expecting property name enclosed in double quotes", at_);
      made.keys.push_back(string());
      skip();
      if (peek() != ':') fail("Expecting ':' delimiter", at_);
      ++at_, skip();
      made.items.push_back(value(depth + 1));
      skip();
      if (peek() == '}') return ++at_, made;
      if (peek() != ',') fail("Expecting ',' delimiter", at_);
      ++at_, skip();
    }
  }

  unsigned hex() {
    unsigned found = 0;
    const size_t begin = at_;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("Invalid \\uXXXX escape", begin - 1);
      found = 16 * found + unsigned(digit);
    }
    return found;
  }

  static void put(std::string& to, unsigned letter) {
    const auto byte = [&](unsigned x) { to += char(x); };
    if (letter < 0x80) byte(letter);
    else if (letter < 0x800) byte(0xc0 | letter >> 6), byte(0x80 | (letter & 0x3f));
    else if (letter < 0x10000)
      byte(0xe0 | letter >> 12), byte(0x80 | (letter >> 6 & 0x3f)), byte(0x80 | (letter & 0x3f));
    else
      byte(0xf0 | letter >> 18), byte(0x80 | (letter >> 12 & 0x3f)), byte(0x80 | (letter >> 6 & 0x3f)),
          byte(0x80 | (letter & 0x3f));
  }

  std::string string() {
    const size_t begin = at_++;
    std::string made;
    while (true) {
      if (is_end()) fail("Unterminated string starting at", begin);
      const char c = text_[at_];
      if (c == '"') return ++at_, made;
      if (static_cast<unsigned char>(c) < 0x20) fail("Invalid control character at", at_);
      ++at_;
      if (c != '\\') {
        made += c;
        continue;
      }
      const char mark = peek();
      const std::string marks = "\"\\/bfnrt", means = "\"\\/\b\f\n\r\t";
      if (is_end()) fail("Unterminated string starting at", begin);
      const size_t which = marks.find(mark);
      ++at_;
      if (which != std::string::npos && mark) made += means[which];
      else if (mark == 'u') {
        unsigned letter = hex();
        if (letter >= 0xd800 && letter < 0xdc00 && text_.compare(at_, 2, "\\u") == 0) {
          const size_t kept = at_;
          at_ += 2;
          const unsigned low = hex();
          if (low >= 0xdc00 && low < 0xe000) letter = 0x10000 + ((letter - 0xd800) << 10) + (low - 0xdc00);
          else at_ = kept;
        }
        put(made, letter);
      } else {
        fail("Invalid \\escape", at_ - 2);
      }
    }
  }
};

}  // namespace detail
}  // namespace ingot
