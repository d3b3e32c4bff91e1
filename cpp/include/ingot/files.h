// The folder of a package: every file is read once and checked before any of it is opened.
#pragma once
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "metadata.h"

namespace ingot {
namespace detail {

namespace fs = std::filesystem;

// A path as Python prints it: without empty parts and single dots.
inline std::string plain_path(const std::string& path) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (at <= path.size()) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (!part.empty() && part != ".") parts.push_back(part);
    at = end + 1;
  }
  const std::string made = (path.empty() || path[0] != '/' ? "" : "/") + join(parts, "/");
  return made.empty() ? "." : made;
}

inline bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

inline std::string kind_of(const std::string& device) { return device.substr(0, device.find(':')); }

inline bool read_file(const fs::path& file, std::string& content) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return false;
  content.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  return !stream.bad();
}

// The content of a file that lies in a folder itself, or why there is none.
inline bool read_content(const std::string& folder, const std::string& name, const std::string& again,
                         std::string& content, std::vector<Problem>& problems) {
  const auto refused = [&](const char* key, const std::string& file, const std::string& error = "") {
    problems.push_back(tell(key, {{"file", file}, {"folder", folder}, {"again", again}, {"error", error}}));
    return false;
  };
  if (name.empty() || name == "." || name == ".." || name.find_first_of(std::string("/\\\0", 3)) != std::string::npos)
    return refused("bad name", quote(name));
  const fs::path file = fs::path(folder) / name;
  std::error_code wrong;
  if (!fs::exists(file, wrong)) return refused("missing file", name);
  const fs::path real = fs::canonical(file, wrong);
  if (real.parent_path() != fs::canonical(folder, wrong)) return refused("link", name);
  if (!fs::is_regular_file(real, wrong)) return refused("no file", name);
  errno = 0;
  if (!read_file(real, content)) {
    const int number = errno ? errno : EIO;
    return refused("unreadable file", name,
                   "[Errno " + std::to_string(number) + "] " + std::strerror(number) + ": " + quote(real.string()));
  }
  return true;
}

inline std::vector<std::string> find_metadata(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code wrong;
  if (fs::is_directory(folder, wrong))
    for (fs::directory_iterator at(folder, wrong), end; !wrong && at != end; at.increment(wrong))
      if (ends_with(at->path().filename().string(), "_meta.json")) found.push_back(at->path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

// What Python prints for a value of JSON.
inline std::string show_json(const Json* json) {
  if (!json || json->type == Json::null) return "None";
  if (json->type == Json::boolean) return json->truth ? "True" : "False";
  if (json->type == Json::string) return json->text;
  if (json->type == Json::number) return json->is_whole() ? json->raw : show_number(json->real(), false);
  return json->type == Json::array ? "[]" : "{}";
}

// What is wrong with bytes that are no UTF-8, as Python tells it; nothing where they are.
inline std::string find_wrong_bytes(const std::string& text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const unsigned first = byte(i);
    const size_t count = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    size_t right = 1;
    for (; right < count && i + right < text.size(); ++right) {
      const unsigned next = byte(i + right), least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80,
                     most = first == 0xf4 ? 0x8f : 0xbf;
      if (right == 1 ? next < least || next > most : next < 0x80 || next > 0xbf) break;
    }
    if (count && right == count) {
      i += count;
      continue;
    }
    const char* digits = "0123456789abcdef";
    const bool ends = count && i + right == text.size();
    std::string told = "'utf-8' codec can't decode byte";
    if (right == 1) told += std::string(" 0x") + digits[first >> 4] + digits[first & 15] + " in position ";
    else told += "s in position ";
    told += std::to_string(i) + (right > 1 ? "-" + std::to_string(i + right - 1) : "") + ": ";
    return told + (!count ? "invalid start byte" : ends ? "unexpected end of data" : "invalid continuation byte");
  }
  return "";
}

inline bool is_json(const std::string& text, Json& json, std::string& error) {
  error = find_wrong_bytes(text);
  if (!error.empty()) return false;
  try {
    json = JsonReader(text).read();
    return true;
  } catch (const JsonError& wrong) {
    error = wrong.told;
    return false;
  }
}

// Each name once, at its first place and with its last value, as Python's tables have it, and numbers
// that are not finite as Ingot writes them.
inline void join_equal(Json& json) {
  if (json.type == Json::number && !std::isfinite(json.real())) {
    Json told;
    told.type = Json::string, told.text = std::isnan(json.real()) ? "nan" : json.real() > 0 ? "inf" : "-inf";
    json.type = Json::object, json.keys = {"not finite"}, json.items = {told};
  }
  for (size_t i = 0; i < json.keys.size(); ++i)
    for (size_t k = json.keys.size(); k-- > i + 1;)
      if (json.keys[k] == json.keys[i]) {
        std::swap(json.items[i], json.items[k]);
        for (size_t m = k; m > i; --m)
          if (json.keys[m] == json.keys[i])
            json.keys.erase(json.keys.begin() + std::ptrdiff_t(m)),
                json.items.erase(json.items.begin() + std::ptrdiff_t(m));
        break;
      }
  for (Json& each : json.items) join_equal(each);
}

inline Metadata open_metadata(const std::string& folder, const std::string& file, std::string again) {
  std::vector<Problem> problems;
  std::string text, error;
  read_content(folder, file, again, text, problems);
  raise_if(problems);
  Json json;
  if (!is_json(text, json, error)) throw refuse("no json", {{"file", file}, {"error", error}, {"again", again}});
  const Json* form = json.type == Json::object ? json.find("format") : nullptr;
  if (!form || form->type != Json::string || form->text != tables::format)
    throw refuse("no format", {{"file", file}, {"form", tables::format}, {"again", again}});
  const Json* schema = json.find("schema_version");
  if (!schema || schema->type != Json::number || schema->real() != double(tables::schema)) {
    const Json* origin = json.find("origin");
    const Json* command = origin && origin->type == Json::object ? origin->find("command") : nullptr;
    if (command && command->type == Json::string && !command->text.empty())
      again = "compile it again: " + command->text;
    throw refuse(
        "schema",
        {{"file", file}, {"found", show_json(schema)}, {"schema", std::to_string(tables::schema)}, {"again", again}});
  }
  Metadata meta;
  // Python takes another way, by tables, where there are numbers that are not finite
  if (text.find("not finite") != std::string::npos) join_equal(json);
  try {
    meta = read_metadata(json);
  } catch (const Malformed& wrong) {
    throw refuse("layout", {{"file", file}, {"error", wrong.told}, {"again", again}});
  }
  if (!is_sealed(text)) throw refuse("seal", {{"file", file}, {"again", again}});
  meta.contract = compute_contract(json);
  return meta;
}

// What to do about a package for another device; `is_here` tells whether a kind of device is.
inline std::string fix_device(const std::string& held, const std::function<bool(const std::string&)>& is_here) {
  const std::string both = "compile it for both: ingot compile FILE --device cpu cuda";
  return is_here(held) ? both + "; or load it with device='" + held + "' (--device " + held + ")" : both;
}

// What the metadata of a device's folder says that it computes, as a hash; "" where it says nothing.
inline std::string read_program(const std::string& folder) {
  const std::vector<std::string> files = find_metadata(folder);
  std::string text, error;
  Json json;
  if (files.size() != 1 || !read_file(fs::path(folder) / files[0], text) || !is_json(text, json, error)) return "";
  const Json* origin = json.type == Json::object ? json.find("origin") : nullptr;
  const Json* program = origin && origin->type == Json::object ? origin->find("program") : nullptr;
  return program && program->type == Json::string ? program->text : "";
}

// The metadata of a package, and the folder that holds it.
inline Metadata find_package(const std::string& given, const std::string& device, std::string& folder,
                             const std::function<bool(const std::string&)>& is_here) {
  const std::string place = plain_path(given), kind = kind_of(device);
  for (const std::string& each : {place, plain_path(place + "/" + kind)}) {
    const std::vector<std::string> files = find_metadata(each);
    if (files.empty()) continue;
    if (files.size() > 1) throw refuse("two packages", {{"folder", each}, {"files", join(files, " and ")}});
    Metadata meta = open_metadata(each, files[0], "compile the package again");
    const std::string again = again_of(meta);
    if (files[0] != meta.name + "_meta.json")
      throw refuse("other name", {{"file", files[0]}, {"name", meta.name}, {"again", again}});
    const fs::path path(each);
    std::string marked;
    read_file(path.parent_path() / ".older", marked);
    const std::vector<std::string> older = split(marked);
    if (path.filename() == meta.device && has(older, meta.device))
      throw refuse("older", {{"folder", each}, {"again", again}});
    std::vector<Problem> problems;
    for (const std::string& told : Consistency::find(meta))
      problems.push_back(tell("layout", {{"file", files[0]}, {"error", told}, {"again", again}}));
    // which of two folders is meant that compute different things is not known, unless one is named
    for (const char* other : {"cpu", "cuda"}) {
      if (each == place || meta.device == other || has(older, other)) continue;
      const std::string beside = plain_path(place + "/" + other), program = read_program(beside);
      if (!meta.program.empty() && !program.empty() && program != meta.program)
        problems.push_back(tell("other folder", {{"folder", each}, {"other", beside}, {"again", again}}));
    }
    raise_if(problems);
    folder = each;
    return meta;
  }
  std::vector<std::string> have;
  std::error_code wrong;
  if (fs::is_directory(place, wrong))
    for (fs::directory_iterator at(place, wrong), end; !wrong && at != end; at.increment(wrong)) {
      const std::string name = at->path().filename().string();
      if (name[0] != '.')
        for (size_t i = find_metadata(at->path().string()).size(); i > 0; --i) have.push_back(name);
    }
  std::sort(have.begin(), have.end());
  if (!have.empty())
    throw refuse("other devices",
                 {{"place", place}, {"held", join(have)}, {"device", device}, {"fix", fix_device(have[0], is_here)}});
  if (fs::is_regular_file(fs::path(place) / "graphs.json", wrong))
    throw refuse("torch package", {{"place", place}});
  throw refuse("no package", {{"place", place}});
}

// The content of every file of a package, each of which is the one that was compiled.
inline std::map<std::string, std::string> read_files(const Metadata& meta, const std::string& folder) {
  const std::string again = again_of(meta), contract = "ingot contract " + meta.contract;
  std::vector<Problem> problems;
  std::map<std::string, std::string> contents;
  const std::vector<std::string> listed = meta.files();
  std::set<std::string> named(listed.begin(), listed.end()), sealed;
  for (const auto& [name, digest] : meta.digests) sealed.insert(name);
  for (const std::string& name : named)
    if (!sealed.count(name)) problems.push_back(tell("no digest", {{"file", name}, {"again", again}}));
  for (const std::string& name : sealed)
    if (!named.count(name)) problems.push_back(tell("no name", {{"file", name}, {"again", again}}));
  for (const auto& [name, wanted] : meta.digests) {
    std::string content;
    if (!read_content(folder, name, again, content, problems)) continue;
    if (sha256(content) != wanted) {
      problems.push_back(tell("digest", {{"file", name}, {"again", again}}));
      continue;
    }
    if (ends_with(name, ".pt2") || ends_with(name, ".cpp") || ends_with(name, ".cu") || ends_with(name, ".txt")) {
      const std::string body = content.substr(0, content.find_last_not_of('\n') + 1);
      if (!ends_with(body, contract)) {
        problems.push_back(tell("contract", {{"file", name}, {"again", again}}));
        continue;
      }
    }
    contents[name] = std::move(content);
  }
  raise_if(problems);
  return contents;
}

}  // namespace detail
}  // namespace ingot
