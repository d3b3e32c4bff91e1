// Packages of graphs (`--backend inductor`), run by libtorch: Newton's method is driven here, over the
// whole batch; points that have converged are frozen, those that failed are set aside. Including this
// file lets `ingot::Model::load` open them.
#pragma once
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model.h"

namespace ingot {
namespace detail {

using Tensors = std::map<std::string, at::Tensor>;
using Pair = std::pair<std::string, std::string>;

// What became of every point, as tensors.
struct GraphStatus {
  std::string solve;
  at::Tensor reason, iterations, residual, accepted;

  at::Tensor converged() const { return reason == 0; }
};

// The Euclidean norm of each column, wherever a norm itself is a number.
inline at::Tensor norms(const at::Tensor& x) {
  const at::Tensor plain = at::linalg_vector_norm(x, 2, at::IntArrayRef{0});
  const bool wide = x.scalar_type() == at::kDouble;
  const double tiny = wide ? std::numeric_limits<double>::min() : double(std::numeric_limits<float>::min());
  const double eps = wide ? std::numeric_limits<double>::epsilon() : double(std::numeric_limits<float>::epsilon());
  const double largest = wide ? std::numeric_limits<double>::max() : double(std::numeric_limits<float>::max());
  const double safe = std::sqrt(double(x.size(0)) * tiny / eps);
  const double least = plain.min().item<double>(), most = plain.max().item<double>();
  if (least > safe && most < INFINITY) return plain;
  const at::Tensor scale = at::linalg_vector_norm(x, INFINITY, at::IntArrayRef{0}).clamp(tiny, largest);
  return scale * at::linalg_vector_norm(x / scale, 2, at::IntArrayRef{0});
}

// The largest part by which an update changes a variable, and the next (execute/newton.py has all three).
inline std::pair<at::Tensor, at::Tensor> measure_updates(const at::Tensor& update, const at::Tensor& unknowns,
                                                         const std::vector<int64_t>& widths) {
  at::Tensor change = at::zeros({unknowns.size(1)}, unknowns.options());
  at::Tensor following = change;
  int64_t begin = 0;
  for (const int64_t width : widths) {
    const at::Tensor by = update.narrow(0, begin, width).abs().amax(0);
    const at::Tensor of = unknowns.narrow(0, begin, width).abs().amax(0);
    const at::Tensor part = by / of.clamp_min(double(std::numeric_limits<float>::min()));
    following = at::maximum(following, at::minimum(change, part));
    change = at::maximum(change, part);
    begin += width;
  }
  return {change, widths.size() > 1 ? following : change};
}

// Which points had come as far before the update as tolerances ask or single precision lets them.
inline at::Tensor find_ended(const at::Tensor& before, const at::Tensor& now, const at::Tensor& first,
                             const std::pair<at::Tensor, at::Tensor>& changes, const at::Tensor& small) {
  const auto& [change, following] = changes;
  const at::Tensor down = before <= 1e-5 * first, is_unseen = (following <= 1e-6) & (before <= first);
  const at::Tensor both = (before <= 1e-2 * first) & (change <= 1e-4), is_stuck = ~(now < 0.5 * before);
  return (small & (change <= 1e-6)) | (is_stuck & (small | down | both | is_unseen));
}

// Which points an update from there confirms.
inline at::Tensor find_confirmed(const at::Tensor& before, const at::Tensor& reach, const at::Tensor& first,
                                 const std::pair<at::Tensor, at::Tensor>& changes, const Rules& rules) {
  const auto& [change, following] = changes;
  const at::Tensor down = (reach <= std::max(1e-5, rules.rel_tol) * first) | (reach < rules.abs_tol);
  const at::Tensor both = (reach <= 1e-2 * first) & (change <= 1e-4);
  const at::Tensor is_unseen = (following <= 1e-6) & (before <= first) & (reach <= 8 * before);
  return (change <= 1e-6) | ((down | both) & (change <= 1e-2)) | is_unseen;
}

// The equations of a solve, given what it reads.
class Equations {
 public:
  virtual ~Equations() = default;
  virtual at::Tensor rhs(const at::Tensor& u) = 0;
  virtual std::pair<at::Tensor, at::Tensor> step(const at::Tensor& u, const at::Tensor& right,
                                                 const at::Tensor& active) = 0;
  virtual at::Tensor sensitivity(const at::Tensor& u) = 0;
  std::vector<GraphStatus> statuses;  // of solves inside
};

// The new unknowns, -r there, and its norm, after the cutbacks that each point needs.
inline void cut_back(Equations& system, const Rules& rules, const at::Tensor& u, const at::Tensor& right,
                     const at::Tensor& size, at::Tensor& moved, at::Tensor& after, at::Tensor& now,
                     const at::Tensor& active) {
  const at::Tensor update = moved - u;
  at::Tensor promised = at::ones_like(size);
  if (rules.linesearch == backtracking) promised = 2.0 * ((right / size) * (update / size)).sum(0);
  at::Tensor alpha = at::ones_like(size);
  now = norms(after);
  for (int i = 2; i < rules.max_linesearch_iterations; ++i) {
    const at::Tensor decreased = (now / size).square() <= 1.0 - rules.linesearch_stopping_criteria * alpha * promised;
    const at::Tensor accepted = decreased | (now <= rules.abs_tol) | ~active;
    if (accepted.all().item<bool>()) break;
    alpha = at::where(accepted, alpha, alpha / rules.linesearch_cutback);
    moved = at::where(accepted, moved, u + alpha * update);
    after = system.rhs(moved);
    now = norms(after);
  }
}

// The unknowns, NaN where a point did not converge, and what became of every point. widths: how many
// unknowns each variable has. In single precision one update more confirms what has met the tolerances, or two.
inline std::pair<at::Tensor, GraphStatus> run_newton(const std::string& name, const at::Tensor& start,
                                                     Equations& system, const Rules& rules,
                                                     const std::vector<int64_t>& widths, bool in_parts) {
  at::Tensor u = start, right = system.rhs(u), size = norms(right);
  const at::Tensor first = size;
  const bool is_single = u.scalar_type() == at::kFloat;
  at::Tensor reason = at::full_like(size, 1, size.options().dtype(at::kChar));
  at::Tensor met = size < rules.abs_tol;
  reason.masked_fill_(is_single ? size == 0.0 : met, 0);
  reason.masked_fill_(~at::isfinite(size), 2);
  at::Tensor iterations = at::zeros_like(size, size.options().dtype(at::kInt));
  at::Tensor near = at::zeros_like(met);
  for (int i = 1; i < rules.max_its + 2 * is_single; ++i) {
    at::Tensor active = reason == 1;
    if (i >= rules.max_its) active = active & (met | near);
    if (!active.any().item<bool>()) break;
    if (rules.stop == stop_batch && !is_single) active = reason != 2;
    auto [moved, after] = system.step(u, right, active);
    const at::Tensor full = moved, reach = norms(after);
    at::Tensor now = reach;
    if (rules.linesearch != no_linesearch) cut_back(system, rules, u, right, size, moved, after, now, active);
    iterations += active;
    at::Tensor done = at::zeros_like(active);
    if (is_single) {
      const auto changes = measure_updates(full - u, u, widths);
      const at::Tensor ended = active & find_ended(size, now, first, changes, met);
      done = ended & (near | (changes.first <= 1e-6)) & find_confirmed(size, reach, first, changes, rules);
      near = ended;
      if (done.any().item<bool>())
        moved = at::where(done, u, moved), after = at::where(done, right, after), now = at::where(done, size, now);
    }
    met = now < rules.rel_tol * first;
    if (in_parts) met = met & (norms(moved - u) < rules.substep_del_tol * (norms(moved) + rules.abs_tol));
    met = active & (met | (now < rules.abs_tol));
    done = done | (is_single ? active & (now == 0.0) : met);
    u = moved, right = after, size = at::where(active, now, size);
    reason.masked_fill_(done, 0);
    reason.masked_fill_(active & ~at::isfinite(size), 2);
  }
  u = at::where(reason == 0, u, at::scalar_tensor(NAN, u.options()));
  at::Tensor accepted = at::full_like(reason, 3);
  accepted.masked_fill_(size < rules.rel_tol * first, 2);
  accepted.masked_fill_(size < rules.abs_tol, 1);
  accepted.masked_fill_(reason != 0, 0);
  return {u, GraphStatus{name, reason, iterations, size, accepted}};
}

// A product of blocks, each (rows, columns) with or without points behind.
inline at::Tensor multiply_blocks(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() == 2 && b.dim() == 2) return at::matmul(a, b);
  return at::einsum(std::string(a.dim() == 3 ? "ijp" : "ij") + "," + (b.dim() == 3 ? "jkp" : "jk") + "->ikp", {a, b});
}

inline void add_block(std::map<Pair, at::Tensor>& known, const Pair& pair, at::Tensor block) {
  const auto found = known.find(pair);
  if (found != known.end()) {
    at::Tensor old = found->second;
    if (old.dim() != block.dim()) (old.dim() == 3 ? block : old).unsqueeze_(-1);
    block = old + block;
  }
  known[pair] = block;
}

// Compiled graphs and their description -> values, statuses and derivatives.
class Graphs {
 public:
  using Loader = torch::inductor::AOTIModelPackageLoader;
  struct Results {
    Tensors values;
    std::vector<GraphStatus> statuses;
    std::map<Pair, at::Tensor> slopes;
  };

  Graphs(std::shared_ptr<const Description> description, const std::map<std::string, std::string>& contents)
      : d(std::move(description)) {
    for (const GraphValue& v : d->values) shape_[v.name] = &v;
    for (const GraphSegment& s : d->segments) {
      if (s.inner) inner_[s.name] = std::make_shared<Graphs>(s.inner, contents);
      for (const std::string* file : {&s.value, &s.jvp, &s.rhs, &s.step, &s.ift, &s.predictor})
        if (!file->empty() && !graphs_.count(*file)) graphs_[*file] = open(contents.at(*file));
    }
    std::vector<std::string> names = d->inputs;
    names.insert(names.end(), d->parameters.begin(), d->parameters.end());
    for (const std::string& n : names) {
      const std::string shown = d->given.count(n) ? d->given.at(n) : n;
      given_[shown] = n;
      for (const Block& s : d->slopes)
        if (s.input == shown) wanted_[n] = shown;
    }
  }

  const std::string& inner_name(const std::string& shown) const { return given_.at(shown); }
  int64_t width(const std::string& name) const { return shape_.at(name)->width(); }
  const Description& description() const { return *d; }

  Results run(Tensors values, bool slopes, const std::map<std::string, Rules>& rules) const {
    Results made;
    for (const GraphSegment& s : d->segments) {
      std::vector<at::Tensor> reads;
      for (const std::string& n : s.reads) reads.push_back(values.at(n));
      std::map<Pair, at::Tensor> local;
      if (!s.implicit) {
        const std::vector<at::Tensor> found = call(s.value, reads);
        for (size_t i = 0; i < s.gives.size(); ++i) values[s.gives[i]] = found.at(i);
        if (slopes && !s.jvp.empty()) {
          const std::vector<at::Tensor> blocks = call(s.jvp, reads);
          for (size_t i = 0; i < s.slopes.size(); ++i) local[{s.slopes[i].output, s.slopes[i].input}] = blocks.at(i);
        }
      } else {
        std::vector<Taken> taken;
        at::Tensor u = solve(s, reads, rules, made.statuses, taken);
        const std::vector<at::Tensor> rows = split(u, s.gives, 0);
        for (size_t i = 0; i < s.gives.size(); ++i) values[s.gives[i]] = rows[i];
        if (slopes) local = sensitivity(s, u, reads, taken, rules);
      }
      if (slopes) chain(local, made.slopes);
    }
    made.values = std::move(values);
    return made;
  }

  // A derivative (rows, columns, points), or (rows, columns) where it is constant.
  at::Tensor block(const Results& found, const std::string& output, const std::string& input) const {
    const auto at = found.slopes.find({output, input});
    if (at != found.slopes.end()) return at->second;
    const std::string& x = given_.at(input);
    at::Tensor none = at::zeros({width(output), width(x)}, d->dtype == "float64" ? at::kDouble : at::kFloat);
    return output == x ? none.fill_diagonal_(1) : none;
  }

 private:
  // Parts of steps: of which points, from where to where, what was read, and their unknowns.
  struct Taken {
    at::Tensor points, begin, end;
    Tensors reads;
    at::Tensor unknowns;

    at::Tensor blend(const Part& part, const Tensors& values) const {
      const at::Tensor& at = part.role == "old" ? begin : end;
      const std::string &old = part.role == "old" ? part.name : part.other,
                        &now = part.role == "old" ? part.other : part.name;
      return (1.0 - at) * values.at(old) + at * values.at(now);
    }
  };

  class GraphEquations : public Equations {
   public:
    GraphEquations(const Graphs& all, const GraphSegment& segment, const std::vector<at::Tensor>& reads)
        : all_(all), s_(segment), reads_(reads) {}
    at::Tensor rhs(const at::Tensor& u) override { return run(s_.rhs, {u}).at(0); }
    std::pair<at::Tensor, at::Tensor> step(const at::Tensor& u, const at::Tensor&, const at::Tensor& active) override {
      const std::vector<at::Tensor> found = run(s_.step, {u, active.to(u.scalar_type())});
      return {found.at(0), found.at(1)};
    }
    at::Tensor sensitivity(const at::Tensor& u) override { return run(s_.ift, {u}).at(0); }

   private:
    const Graphs& all_;
    const GraphSegment& s_;
    const std::vector<at::Tensor>& reads_;
    std::vector<at::Tensor> run(const std::string& file, std::vector<at::Tensor> given) const {
      given.insert(given.end(), reads_.begin(), reads_.end());
      return all_.call(file, given);
    }
  };

  // Equations whose residuals solve others: a run of segments at every call.
  class NestedEquations : public Equations {
   public:
    NestedEquations(const Graphs& inner, const GraphSegment& segment, const std::vector<at::Tensor>& reads,
                    const std::map<std::string, Rules>& rules)
        : inner_(inner), s_(segment), rules_(rules) {
      for (size_t i = 0; i < s_.reads.size(); ++i) given_[s_.reads[i]] = reads[i];
    }
    at::Tensor rhs(const at::Tensor& u) override {
      Results found = run(u, false);
      statuses = found.statuses;
      std::vector<at::Tensor> rows;
      for (const std::string& n : inner_.d->outputs) rows.push_back(found.values.at(n));
      return -at::cat(rows);
    }
    std::pair<at::Tensor, at::Tensor> step(const at::Tensor& u, const at::Tensor& right,
                                           const at::Tensor& active) override {
      const at::Tensor matrix = differentiate(u).first;
      const at::Tensor update = std::get<0>(at::linalg_solve_ex(matrix, right.t().unsqueeze(-1))).squeeze(-1).t();
      const at::Tensor moved = at::where(active, u + update.contiguous(), u);
      return {moved, rhs(moved)};
    }
    at::Tensor sensitivity(const at::Tensor& u) override {
      const auto [left, right] = differentiate(u);
      return std::get<0>(at::linalg_solve_ex(left, -right)).permute({1, 2, 0});
    }

   private:
    const Graphs& inner_;
    const GraphSegment& s_;
    std::map<std::string, Rules> rules_;
    Tensors given_;

    Results run(const at::Tensor& u, bool slopes) const {
      Tensors values = given_;
      const std::vector<std::string> names(inner_.d->inputs.begin(),
                                           inner_.d->inputs.begin() + std::ptrdiff_t(s_.gives.size()));
      const std::vector<at::Tensor> rows = inner_.split(u, names, 0);
      for (size_t i = 0; i < names.size(); ++i) values[names[i]] = rows[i];
      return inner_.run(std::move(values), slopes, rules_);
    }
    std::pair<at::Tensor, at::Tensor> differentiate(const at::Tensor& u) const {
      const Results found = run(u, true);
      const auto join_blocks = [&](const std::vector<std::string>& names) {
        std::vector<at::Tensor> rows;
        for (const std::string& y : inner_.d->outputs) {
          std::vector<at::Tensor> row;
          for (const std::string& x : names) {
            at::Tensor block = inner_.block(found, y, x);
            row.push_back(block.dim() == 3 ? block : block.unsqueeze(-1).expand({-1, -1, u.size(-1)}));
          }
          rows.push_back(at::cat(row, 1));
        }
        return at::cat(rows).permute({2, 0, 1});
      };
      const at::Tensor matrix =
          join_blocks({inner_.d->inputs.begin(), inner_.d->inputs.begin() + std::ptrdiff_t(s_.gives.size())});
      return {matrix, s_.columns.empty() ? matrix.narrow(2, 0, 0) : join_blocks(s_.columns)};
    }
  };

  static std::shared_ptr<Loader> open(const std::string& archive) {
    const PrivateFolder folder;
    return std::make_shared<Loader>(folder.write("private.pt2", archive), "model", false, 1, -1);
  }
  std::vector<at::Tensor> call(const std::string& file, const std::vector<at::Tensor>& given) const {
    return graphs_.at(file)->run(given);
  }
  std::vector<at::Tensor> split(const at::Tensor& x, const std::vector<std::string>& names, int64_t dim) const {
    std::vector<int64_t> widths;
    for (const std::string& n : names) widths.push_back(width(n));
    return x.split_with_sizes(widths, dim);
  }
  std::unique_ptr<Equations> equations(const GraphSegment& s, const std::vector<at::Tensor>& reads,
                                       const std::map<std::string, Rules>& rules) const {
    const auto inner = inner_.find(s.name);
    if (inner == inner_.end()) return std::make_unique<GraphEquations>(*this, s, reads);
    return std::make_unique<NestedEquations>(*inner->second, s, reads, rules);
  }

  std::pair<at::Tensor, GraphStatus> newton(const GraphSegment& s, const std::vector<at::Tensor>& reads,
                                            const std::map<std::string, Rules>& all, bool in_parts,
                                            std::vector<GraphStatus>& inside) const {
    at::Tensor start;
    if (!s.predictor.empty()) {
      start = call(s.predictor, reads).at(0);
    } else {
      std::vector<at::Tensor> rows;
      for (const std::string& n : s.guesses)
        rows.push_back(reads[size_t(std::find(s.reads.begin(), s.reads.end(), n) - s.reads.begin())]);
      start = at::cat(rows);
    }
    const std::unique_ptr<Equations> system = equations(s, reads, all);
    Rules rules = all.count(s.name) ? all.at(s.name) : s.rules;
    if (s.level) rules.stop = stop_point;  // points that need no parts do not wait for those that do
    std::vector<int64_t> widths;
    for (const std::string& n : s.gives) widths.push_back(width(n));
    auto found = run_newton(s.name, start, *system, rules, widths, in_parts);
    inside = system->statuses;
    return found;
  }

  at::Tensor solve(const GraphSegment& s, const std::vector<at::Tensor>& reads,
                   const std::map<std::string, Rules>& rules, std::vector<GraphStatus>& statuses,
                   std::vector<Taken>& taken) const {
    std::vector<GraphStatus> inside;
    auto [u, status] = newton(s, reads, rules, false, inside);
    if (s.level && !status.converged().all().item<bool>()) u = take_in_parts(s, reads, rules, u, status, taken);
    const auto keep = [&](const GraphStatus& told) {
      for (GraphStatus& each : statuses)
        if (each.solve == told.solve) return void(each = told);
      statuses.push_back(told);
    };
    for (const GraphStatus& each : inside) keep(each);
    keep(status);
    return u;
  }

  // The steps of points that failed, each halved until it converges, in the order of recursive bisection.
  at::Tensor take_in_parts(const GraphSegment& s, const std::vector<at::Tensor>& reads,
                           const std::map<std::string, Rules>& rules, at::Tensor u, GraphStatus& status,
                           std::vector<Taken>& taken) const {
    const at::Tensor failed = (~status.converged()).nonzero().select(1, 0);
    u = u.clone();
    for (at::Tensor* row : {&status.reason, &status.iterations, &status.residual, &status.accepted})
      *row = row->clone();
    const int64_t whole_step = int64_t(1) << s.level;
    at::Tensor begin = at::zeros({failed.size(0)}, at::kLong), length = at::full_like(begin, whole_step >> 1);
    Tensors whole, carried;
    for (size_t i = 0; i < s.reads.size(); ++i) whole[s.reads[i]] = reads[i].index_select(1, failed);
    for (const Part& p : s.parts)
      if (p.role == "carried") carried[p.name] = whole.at(p.name).clone();
    while (true) {
      const at::Tensor index = ((begin != whole_step) & (length > 0)).nonzero().select(1, 0);
      if (index.size(0) == 0) break;
      const at::Tensor from = begin.index_select(0, index), along = length.index_select(0, index);
      const auto share = [&](const at::Tensor& x) {
        return (x.to(at::kDouble) / double(whole_step)).to(u.scalar_type());
      };
      Taken part{index, share(from), share(from + along), {}, {}};
      Tensors here;
      for (const auto& [n, x] : whole) here[n] = (carried.count(n) ? carried.at(n) : x).index_select(1, index);
      part.reads = here;
      for (const Part& p : s.parts)
        if (p.role != "carried") part.reads[p.name] = part.blend(p, here);
      std::vector<at::Tensor> ordered;
      for (const std::string& n : s.reads) ordered.push_back(part.reads.at(n).contiguous());
      std::vector<GraphStatus> inside;
      const auto [found, said] = newton(s, ordered, rules, true, inside);
      const at::Tensor points = failed.index_select(0, index);
      u.index_copy_(1, points, found);
      status.reason.index_copy_(0, points, said.reason), status.residual.index_copy_(0, points, said.residual),
          status.accepted.index_copy_(0, points, said.accepted);
      status.iterations.index_add_(0, points, said.iterations);
      const at::Tensor converged = said.converged(), after = from + along;
      begin.index_copy_(0, index, at::where(converged, after, from));
      length.index_copy_(0, index, at::where(converged, after & -after, at::div(along, 2, "floor")));
      const at::Tensor good = converged.nonzero().select(1, 0);
      const std::vector<at::Tensor> rows = split(found, s.gives, 0);
      Tensors ends = part.reads;
      for (size_t i = 0; i < s.gives.size(); ++i) ends[s.gives[i]] = rows[i];
      for (const Part& p : s.parts)
        if (p.role == "carried")
          carried[p.name].index_copy_(1, index.index_select(0, good), ends.at(p.other).index_select(1, good));
      Taken kept{failed.index_select(0, index.index_select(0, good)),
                 part.begin.index_select(0, good),
                 part.end.index_select(0, good),
                 {},
                 found.index_select(1, good).contiguous()};
      for (const auto& [n, x] : part.reads) kept.reads[n] = x.index_select(1, good).contiguous();
      taken.push_back(std::move(kept));
    }
    const at::Tensor lost = failed.index_select(0, (begin != whole_step).nonzero().select(1, 0));
    u.index_fill_(1, lost, NAN);
    return u;
  }

  // The derivatives of the unknowns by what is read; NaN at points that failed.
  std::map<Pair, at::Tensor> sensitivity(const GraphSegment& s, const at::Tensor& u,
                                         const std::vector<at::Tensor>& reads, const std::vector<Taken>& taken,
                                         const std::map<std::string, Rules>& rules) const {
    std::map<Pair, at::Tensor> made;
    if (s.columns.empty()) return made;
    at::Tensor whole = equations(s, reads, rules)->sensitivity(u);
    const std::vector<std::string> varied = s.varied();
    int64_t more = 0;
    for (size_t i = s.columns.size(); i < varied.size(); ++i) more += width(varied[i]);
    whole = at::cat({whole, at::zeros({whole.size(0), more, whole.size(-1)}, whole.options())}, 1);
    if (!taken.empty()) differentiate_parts(s, taken, rules, whole);
    whole = at::where(at::isfinite(u).all(0), whole, at::scalar_tensor(NAN, whole.options()));
    const std::vector<at::Tensor> rows = split(whole, s.gives, 0);
    for (size_t i = 0; i < s.gives.size(); ++i) {
      const std::vector<at::Tensor> row = split(rows[i], varied, 1);
      for (size_t k = 0; k < varied.size(); ++k) made[{s.gives[i], varied[k]}] = row[k];
    }
    return made;
  }

  void differentiate_parts(const GraphSegment& s, const std::vector<Taken>& taken,
                           const std::map<std::string, Rules>& rules, at::Tensor& whole) const {
    const std::vector<std::string> varied = s.varied();
    const int64_t points = whole.size(-1);
    const at::Tensor own = at::eye(whole.size(1), whole.options()).unsqueeze(-1);
    const std::vector<at::Tensor> pieces = split(own, varied, 0);
    Tensors ends, carried;
    for (size_t i = 0; i < varied.size(); ++i) ends[varied[i]] = pieces[i];
    for (const Part& p : s.parts)
      if (p.role == "carried") carried[p.name] = ends.at(p.name).repeat({1, 1, points});
    for (const Taken& part : taken) {
      const at::Tensor& at = part.points;
      Tensors here = ends;
      for (const Part& p : s.parts)
        here[p.name] = p.role == "carried" ? carried.at(p.name).index_select(2, at) : part.blend(p, ends);
      std::vector<at::Tensor> reads;
      for (const std::string& n : s.reads) reads.push_back(part.reads.at(n));
      const at::Tensor local = equations(s, reads, rules)->sensitivity(part.unknowns);
      const std::vector<at::Tensor> blocks = split(local, s.columns, 1);
      at::Tensor found;
      for (size_t i = 0; i < s.columns.size(); ++i) {
        const at::Tensor term = multiply_blocks(blocks[i], here.at(s.columns[i]).expand({-1, -1, at.size(0)}));
        found = found.defined() ? found + term : term;
      }
      whole.index_copy_(2, at, found);
      const std::vector<at::Tensor> rows = split(found, s.gives, 0);
      for (size_t i = 0; i < s.gives.size(); ++i) here[s.gives[i]] = rows[i];
      for (const Part& p : s.parts)
        if (p.role == "carried")
          carried[p.name].index_copy_(2, at, here.at(p.other).expand({-1, -1, at.size(0)}).contiguous());
    }
  }

  // Adds the derivatives of a segment's values by inputs, given those of what it read.
  void chain(const std::map<Pair, at::Tensor>& local, std::map<Pair, at::Tensor>& known) const {
    const std::map<Pair, at::Tensor> before = known;
    for (const auto& [pair, block] : local) {
      const auto own = wanted_.find(pair.second);
      if (own != wanted_.end()) add_block(known, {pair.first, own->second}, block);
      for (const auto& [inner, slope] : before)
        if (inner.first == pair.second) add_block(known, {pair.first, inner.second}, multiply_blocks(block, slope));
    }
  }

  std::shared_ptr<const Description> d;
  std::map<std::string, const GraphValue*> shape_;
  std::map<std::string, std::shared_ptr<Graphs>> inner_;
  std::map<std::string, std::shared_ptr<Loader>> graphs_;
  std::map<std::string, std::string> given_, wanted_;
};

// The number of OpenMP threads that a graph wakes: one alone for a few points.
class Alone {
 public:
  explicit Alone(bool wanted) : before_(wanted ? at::get_num_threads() : 0) {
    if (before_ > 1) at::set_num_threads(1);
  }
  ~Alone() {
    if (before_ > 1) at::set_num_threads(before_);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  int before_;
};

class GraphBackend : public Backend {
 public:
  GraphBackend(const Metadata& meta, const std::map<std::string, std::string>& contents)
      : meta_(meta), graphs_(meta.inductor, contents) {}
  std::string name() const override { return "inductor"; }
  bool has_adjoints() const override { return false; }

  void run(detail::Task& task) const override {
    const at::NoGradGuard guard;
    const Alone alone(task.points < 2000);
    const auto kind = meta_.dtype == "float64" ? at::kDouble : at::kFloat;
    const int64_t wide = meta_.dtype == "float64" ? 8 : 4;
    std::map<std::string, Rules> rules;
    for (size_t i = 0; i < meta_.solvers.size(); ++i) rules[meta_.solvers[i].name] = task.rules[i];
    std::vector<const Variable*> names;
    for (const Variable& v : meta_.inputs) names.push_back(&v);
    for (const Parameter& p : meta_.parameters) names.push_back(&p.variable);
    for (const Parameter& p : meta_.constants) names.push_back(&p.variable);
    for (int64_t k = 0; k < task.steps; ++k) {
      const int64_t step = task.first + k;
      Tensors values;
      for (size_t i = 0; i < names.size(); ++i) {
        const Given& x = task.given[i];
        const std::vector<int64_t> sizes = {names[i]->size, task.points}, strides = {x.component, x.point};
        at::Tensor& value = values[graphs_.inner_name(names[i]->name)];
        if (step < x.lag) value = at::zeros(sizes, kind);
        else value = view(shifted(x.data, (step - x.lag) * x.step, wide), sizes, strides, kind).contiguous().clone();
      }
      const Graphs::Results found = graphs_.run(std::move(values), task.entry == Entry::jacobian, rules);
      size_t at = 0;
      const auto put = [&](const at::Tensor& value) {
        const Gives& y = task.gives[at++];
        view(shifted(y.data, step * y.step, wide), {value.size(0), task.points}, {y.component, y.point}, kind)
            .copy_(value);
      };
      for (const Variable& y : meta_.outputs) put(found.values.at(y.name));
      if (task.entry == Entry::jacobian)
        for (const Block& b : meta_.derivatives) put(arrange(graphs_.block(found, b.output, b.input), b, task.points));
      for (size_t s = 0; s < task.reports.size(); ++s) report(task, s, k, found.statuses);
    }
  }

 private:
  static at::Tensor view(void* data, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                         at::ScalarType kind) {
    return at::from_blob(data, sizes, strides, at::TensorOptions().dtype(kind));
  }

  // A block as (components, points), its entries in the order that callers see.
  at::Tensor arrange(const at::Tensor& block, const Block& b, int64_t points) const {
    const Variable *y = nullptr, *x = nullptr;
    for (const Variable& v : meta_.outputs)
      if (v.name == b.output) y = &v;
    for (const Variable& v : meta_.inputs)
      if (v.name == b.input) x = &v;
    for (const Parameter& p : meta_.parameters)
      if (p.variable.name == b.input) x = &p.variable;
    const at::Tensor whole = block.dim() == 3 ? block : block.unsqueeze(-1).expand({-1, -1, points});
    const int64_t ys = product(y->sub_batch), yb = product(y->base), xs = product(x->sub_batch), xb = product(x->base);
    return whole.reshape({ys, yb, xs, xb, points}).permute({0, 2, 1, 3, 4}).reshape({ys * yb * xs * xb, points});
  }

  void report(const detail::Task& task, size_t which, int64_t step, const std::vector<GraphStatus>& all) const {
    const Report& row = task.reports[which];
    const int64_t at = step * task.points, wide = meta_.dtype == "float64" ? 8 : 4;
    std::fill_n(row.pivoted + at, task.points, 0);
    for (const GraphStatus& s : all) {
      if (s.solve != meta_.solvers[which].name) continue;
      const auto copy = [&](void* to, const at::Tensor& from, int64_t size) {
        const at::Tensor flat = from.contiguous();
        std::memcpy(static_cast<char*>(to) + at * size, flat.data_ptr(), size_t(task.points * size));
      };
      copy(row.reason, s.reason, 1), copy(row.iterations, s.iterations, 4), copy(row.residual, s.residual, wide),
          copy(row.accepted, s.accepted, 1);
    }
  }

  Metadata meta_;
  Graphs graphs_;
};

inline std::string plain_version(const std::string& version) { return version.substr(0, version.find('+')); }

// Registers graphs with `Model::load`; once a program, wherever this file is included.
inline const bool opens_graphs = [] {
  graphs() = [](const Metadata& meta, const std::map<std::string, std::string>& contents) -> std::shared_ptr<Backend> {
    if (meta.torch_version != plain_version(TORCH_VERSION))
      throw refuse("other torch",
                   {{"held", meta.torch_version}, {"here", plain_version(TORCH_VERSION)}, {"again", again_of(meta)}});
    try {
      return std::make_shared<GraphBackend>(meta, contents);
    } catch (const c10::Error& error) {
      throw refuse("unreadable file",
                   {{"file", meta.name}, {"error", error.what_without_backtrace()}, {"again", again_of(meta)}});
    }
  };
  return true;
}();

}  // namespace detail
}  // namespace ingot
