// Bytes that were read and checked -> a library that runs exactly them, for the CPU that is here.
#pragma once
#include <dlfcn.h>
#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "files.h"

extern char** environ;

namespace ingot {
namespace detail {

inline std::string machine() {
  utsname told{};
  return uname(&told) == 0 ? told.machine : "";
}

// The CPU levels that this machine runs, best first.
inline const std::vector<std::string>& supported_levels() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> made;
    if (machine() != "x86_64") return std::vector<std::string>{machine()};
    std::ifstream info("/proc/cpuinfo");
    std::string row;
    std::vector<std::string> words;
    while (std::getline(info, row))
      if (row.rfind("flags", 0) == 0 || row.rfind("Features", 0) == 0) {
        words = split(row.substr(std::min(row.find(':'), row.size() - 1) + 1));
        break;
      }
    const size_t count = std::size(tables::levels);
    bool all = true;
    for (size_t i = count; i-- > 0;) {  // each needs what those below it need
      for (const std::string& each : split(tables::levels[i].words)) all &= has(words, each);
      if (all) made.insert(made.begin(), tables::levels[i].name);
    }
    if (made.empty()) made.push_back(tables::levels[count - 1].name);
    return made;
  }();
  return found;
}

// A folder of a name never used before, gone at the end; what has mapped a file of it keeps its bytes.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::error_code wrong;
    fs::path base = fs::temp_directory_path(wrong);
    std::string name = (wrong ? fs::path("/tmp") : base) / "ingot-XXXXXX";
    if (!mkdtemp(name.data()))
      throw refuse(
          "unreadable file",
          {{"file", name}, {"error", std::strerror(errno)}, {"again", "see to the folder of temporary files"}});
    path_ = name;
  }
  ~PrivateFolder() {
    std::error_code wrong;
    fs::remove_all(path_, wrong);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  std::string write(const std::string& name, const std::string& content) const {
    const std::string file = path_ / name;
    std::ofstream stream(file, std::ios::binary);
    stream.write(content.data(), std::streamsize(content.size()));
    stream.close();
    if (!stream)
      throw refuse(
          "unreadable file",
          {{"file", file}, {"error", "it cannot be written"}, {"again", "see to the folder of temporary files"}});
    return file;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// A library that is open; each is mapped once, however often its bytes are loaded.
class Library {
 public:
  static std::shared_ptr<Library> open(const std::string& content) {
    static std::mutex lock;
    static std::map<std::string, std::weak_ptr<Library>> known;
    const std::string digest = sha256(content);
    const std::lock_guard<std::mutex> held(lock);
    if (std::shared_ptr<Library> found = known[digest].lock()) return found;
    const PrivateFolder folder;
    const std::string file = folder.write("private.so", content);
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      std::string told = dlerror();
      if (told.rfind(file + ": ", 0) == 0) told = told.substr(file.size() + 2);
      throw refuse("unreadable file",
                   {{"file", "the library"}, {"error", told}, {"again", "compile the package again"}});
    }
    std::shared_ptr<Library> made(new Library(handle));
    known[digest] = made;
    return made;
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class Function> Function* find(const std::string& name) const {
    void* found = dlsym(handle_, name.c_str());
    if (!found) throw refuse("no symbol", {{"name", name}});
    return reinterpret_cast<Function*>(found);
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

inline bool run_compiler(const std::vector<std::string>& words) {
  std::vector<char*> given;
  for (const std::string& each : words) given.push_back(const_cast<char*>(each.c_str()));
  given.push_back(nullptr);
  pid_t child = 0;
  int status = 1;
  if (posix_spawnp(&child, given[0], nullptr, nullptr, given.data(), environ) != 0) return false;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The library of the best CPU level that runs here, or one rebuilt from the source.
inline std::shared_ptr<Library> open_kernel(const Metadata& meta, const std::map<std::string, std::string>& contents,
                                            const std::function<void(const std::string&)>& log) {
  const std::vector<std::string>& have = supported_levels();
  for (const std::string& level : have)
    for (const auto& [name, file] : meta.kernel->libraries)
      if (name == level) {
        if (level != have[0] && log) log(meta.name + ": running at " + level + ", this machine has " + have[0]);
        return Library::open(contents.at(file));
      }
  std::vector<std::string> levels;
  for (const auto& [name, file] : meta.kernel->libraries) levels.push_back(name);
  if (log) log(meta.name + ": rebuilding for " + have[0] + ", the package holds " + join(levels));
  const PrivateFolder folder;
  const std::string source = folder.write("rebuilt.cpp", contents.at(meta.kernel->source)),
                    library = folder.path() / "rebuilt.so";
  const bool named = have[0].rfind("x86-64-", 0) == 0;
  for (const char* compiler : {"g++", "c++"})
    if (run_compiler({compiler, "-std=c++17", "-O1", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
                      "-fPIC", "-shared", "-Wno-psabi", named ? "-march=" + have[0] : "-march=native", source, "-o",
                      library})) {
      std::string content;
      read_file(library, content);
      return Library::open(content);
    }
  throw refuse("other level", {{"held", join(levels)}, {"here", have[0]}});
}

}  // namespace detail
}  // namespace ingot
