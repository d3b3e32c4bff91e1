// What computes inside a model: a kernel library, a kernel on a GPU, or graphs of torch.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "array.h"
#include "library.h"
#include "pool.h"

namespace ingot {

// What became of every point in a solve, of one call or of all steps of a transient (steps x points).
struct Status {
  enum Reason : int8_t { converged = 0, out_of_steps = 1, not_finite = 2 };
  enum Criterion : int8_t { nothing = 0, by_abs_tol = 1, by_rel_tol = 2, by_rounding = 3 };

  std::string solve;
  int64_t points = 0, begin = 0;  // begin: the step that the first row belongs to
  std::vector<int8_t> reason;
  std::vector<int32_t> iterations;
  std::vector<double> residual;
  std::vector<int32_t> pivoted;
  std::vector<int8_t> accepted;

  int64_t failed() const {  // how often a point failed
    int64_t count = 0;
    for (int8_t each : reason) count += each != converged;
    return count;
  }

  // What to tell the user where points failed; nothing in it where none did.
  std::vector<Problem> problems() const {
    if (!failed()) return {};
    const int64_t rows = points ? int64_t(reason.size()) / points : 0;
    int64_t count = 0, worst = -1;
    double most = -1;
    for (int64_t p = 0; p < points; ++p)
      for (int64_t k = 0; k < rows; ++k) {  // a point counts at its first failing step
        const size_t at = size_t(k * points + p);
        if (reason[at] == converged) continue;
        const double size = std::isnan(residual[at]) ? INFINITY : residual[at];
        const bool before = worst >= 0 && size == most && int64_t(at) < worst;
        if (worst < 0 || size > most || before) worst = int64_t(at), most = size;
        ++count;
        break;
      }
    char size[32];
    std::snprintf(size, sizeof size, "%.1e", residual[size_t(worst)]);
    const bool steps = begin > 0;
    return {detail::tell("not converged",
                         {{"solve", solve},
                          {"failed", std::to_string(count)},
                          {"points", std::to_string(points)},
                          {"point", std::to_string(worst % points)},
                          {"when", steps ? " at step " + std::to_string(worst / points + begin) : ""},
                          {"residual", size},
                          {"reason", reason[size_t(worst)] == out_of_steps ? "out of steps" : "not finite"},
                          {"more", steps ? "; why: ingot diagnose FILE DRIVER" : ""}})};
  }
};

namespace detail {

// Rows of C structures, as a kernel takes them; strides count numbers, a lag counts steps.
struct Given {
  const void* data;
  int64_t step, point, component, lag;
};
struct Gives {
  void* data;
  int64_t step, point, component;
};
struct Report {
  int8_t* reason;
  int32_t* iterations;
  void* residual;
  int32_t* pivoted;
  int8_t* accepted;
};

enum class Entry { forward, jacobian, vjp };

// Steps of all points. Reports are (steps, points); without, nobody asks for them.
struct Task {
  Entry entry = Entry::forward;
  std::vector<Given> given;
  std::vector<Gives> gives;
  std::vector<Report> reports;
  std::vector<Rules> rules;
  int64_t points = 0, first = 0, steps = 1;
  int threads = 1;
  void* stream = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual std::string device() const { return "cpu"; }
  virtual bool has_adjoints() const = 0;
  virtual void run(Task& task) const = 0;

  virtual Array allocate(DType dtype, Shape shape, size_t outermost) const {
    return Array::empty(dtype, std::move(shape), outermost);
  }
  virtual Array to_host(const Array& x, void*) const { return x; }
  virtual Array to_device(const Array& x, void*) const { return x; }
};

// What the solves of a call report to.
struct Tables {
  std::vector<Status> statuses;
  std::vector<std::vector<float>> floats;
  std::vector<Report> rows;

  Tables(const Metadata& meta, int64_t points, int64_t steps, int64_t begin)
      : statuses(meta.solvers.size()), floats(meta.solvers.size()) {
    const size_t n = size_t(points * steps);
    for (size_t i = 0; i < statuses.size(); ++i) {
      Status& s = statuses[i];
      s.solve = meta.solvers[i].name, s.points = points, s.begin = begin;
      s.reason.resize(n), s.iterations.resize(n), s.residual.resize(n), s.pivoted.resize(n), s.accepted.resize(n);
      if (meta.dtype == "float32") floats[i].resize(n);
      rows.push_back({s.reason.data(), s.iterations.data(),
                      meta.dtype == "float32" ? static_cast<void*>(floats[i].data()) : s.residual.data(),
                      s.pivoted.data(), s.accepted.data()});
    }
  }
  std::vector<Status> finish() {
    for (size_t i = 0; i < statuses.size(); ++i)
      for (size_t k = 0; k < floats[i].size(); ++k) statuses[i].residual[k] = double(floats[i][k]);
    return std::move(statuses);
  }
};

inline void* shifted(const void* data, int64_t numbers, int64_t size) {
  return const_cast<char*>(static_cast<const char*>(data)) + numbers * size;
}

// A kernel library of a CPU; ranges of points are shared among threads.
class KernelBackend : public Backend {
 public:
  KernelBackend(const Metadata& meta, std::shared_ptr<Library> library)
      : library_(std::move(library)), wide_(meta.dtype == "float64" ? 8 : 4), adjoints_(meta.adjoints) {
    const std::string prefix = meta.kernel->prefix;
    entries_[0] = library_->find<Function>(prefix + "_forward_steps");
    if (!meta.derivatives.empty()) entries_[1] = library_->find<Function>(prefix + "_jacobian_steps");
    if (meta.adjoints) entries_[2] = library_->find<Function>(prefix + "_vjp_steps");
  }
  std::string name() const override { return "kernel"; }
  bool has_adjoints() const override { return adjoints_; }

  void run(Task& task) const override {
    bool together = false;  // `stop = batch`: each step once to see who needs most updates, then so many for all
    for (const Rules& each : task.rules) together |= each.stop == stop_batch;
    if (!together || task.points == 0) return run_steps(task);
    const int64_t first = task.first, steps = task.steps;
    const std::vector<Report> reports = task.reports;
    const std::vector<Rules> rules = task.rules;
    task.steps = 1;
    for (int64_t k = 0; k < steps; ++k) {
      task.first = first + k;
      const int64_t at = k * task.points;
      for (size_t s = 0; s < reports.size(); ++s)
        task.reports[s] = {reports[s].reason + at, reports[s].iterations + at, shifted(reports[s].residual, at, wide_),
                           reports[s].pivoted + at, reports[s].accepted + at};
      run_steps(task);
      for (size_t s = 0; s < rules.size(); ++s)
        if (rules[s].stop == stop_batch)
          task.rules[s].min_its =
              *std::max_element(task.reports[s].iterations, task.reports[s].iterations + task.points);
      run_steps(task);
      task.rules = rules;
    }
    task.first = first, task.steps = steps, task.reports = reports;
  }

 private:
  using Function = int32_t(const Given*, const Gives*, const Rules*, const Report*, int64_t, int64_t, int64_t, int64_t,
                           int64_t);
  static constexpr int64_t work_of_a_thread = 1000, line = 64, tile = 256, ranges_of_a_thread = 8, chunk = 2048;

  void run_steps(const Task& task) const {
    Function* const entry = entries_[int(task.entry)];
    const int64_t points = task.points;
    const int threads = int(std::min<int64_t>(task.threads, points * task.steps / work_of_a_thread));
    const auto work = [&](int64_t begin, int64_t end) {
      const int32_t told = task.reports.empty() && !task.rules.empty()
                               ? run_unreported(entry, task, begin, end)
                               : entry(task.given.data(), task.gives.data(), task.rules.data(), task.reports.data(),
                                       points, task.first, task.steps, begin, end);
      if (told) throw refuse("no memory", {});
    };
    if (threads <= 1 || points <= line) return points ? work(0, points) : void();
    const int64_t least = std::min(tile, points / threads);
    const int64_t wanted =
        std::max(least, (points + threads * ranges_of_a_thread - 1) / (threads * ranges_of_a_thread));
    const int64_t each = line * ((wanted + line - 1) / line);
    Pool::shared().run((points + each - 1) / each, threads,
                       [&](int64_t i) { work(i * each, std::min((i + 1) * each, points)); });
  }

  // Points of a range a few at a time, whose reports go to memory that is used again.
  int32_t run_unreported(Function* entry, const Task& task, int64_t begin, int64_t end) const {
    const size_t solves = task.rules.size(), n = size_t(std::min(chunk, end - begin));
    std::vector<double> residual(solves * n);
    std::vector<int32_t> counts(2 * solves * n);
    std::vector<int8_t> reason(solves * n);
    std::vector<Report> reports;
    for (size_t s = 0; s < solves; ++s)
      reports.push_back({reason.data() + s * n, counts.data() + 2 * s * n, residual.data() + s * n,
                         counts.data() + (2 * s + 1) * n, nullptr});
    std::vector<Given> given = task.given;
    std::vector<Gives> gives = task.gives;
    for (int64_t at = begin; at < end; at += chunk) {
      for (size_t i = 0; i < given.size(); ++i) given[i].data = shifted(task.given[i].data, at * given[i].point, wide_);
      for (size_t i = 0; i < gives.size(); ++i) gives[i].data = shifted(task.gives[i].data, at * gives[i].point, wide_);
      const int64_t count = std::min(chunk, end - at);
      if (const int32_t told = entry(given.data(), gives.data(), task.rules.data(), reports.data(), count, task.first,
                                     task.steps, 0, count))
        return told;
    }
    return 0;
  }

  std::shared_ptr<Library> library_;
  int64_t wide_;
  bool adjoints_;
  Function* entries_[3] = {};
};

}  // namespace detail
}  // namespace ingot
