// Runs the lines of a kernel over points and steps; the entries of a library call it.
#pragma once

namespace ingot {
namespace {

// Points whose steps are taken together: lines of a step lie side by side, and those of the next a
// whole batch away. Blocks one by one cost 10 to 25 % more, through misses of the cache and the TLB;
// more points gain nothing (benchmarks.bench at 1000 and 10000).
constexpr int64_t tile = 32 * W;

// Steps [first_step, first_step + steps) of the points [begin, end); reports are (steps, points).
// What depends on the parameters [first_parameter, end_parameter) alone is hoisted: computed once
// where they are the same for all points.
template <int hoisted, int first_parameter, int end_parameter, class Point, class Hoist>
INGOT_INLINE void each_point(Point point, Hoist hoist, const Given* in, const Gives* out, const Knobs* knobs,
                             const Reports::One* reports, int64_t points, int64_t first_step, int64_t steps,
                             int64_t begin, int64_t end) {
  [[maybe_unused]] V h[hoisted + 1];
  bool fixed = true;
  for (int i = first_parameter; i < end_parameter; ++i) fixed &= in[i].point == 0;
  if (hoisted && fixed) hoist(Inputs{in, first_step, begin, W}, h);
  for (int64_t first = begin; first < end; first += tile) {
    const int64_t last = end - first < tile ? end : first + tile;
    for (int64_t k = 0; k < steps; ++k)
      for (int64_t i = first; i < last; i += W) {
        const int n = int(last - i < W ? last - i : W);
        const Inputs given{in, first_step + k, i, n};
        const Outputs gives{out, first_step + k, i, n};
        Reports to{reports, k * points + i, points, n};
        if (hoisted && !fixed) hoist(given, h);
        point(given, gives, knobs, to, h);
      }
  }
}

// What a caller in C is told of a call that did not run, or not to its end (package/header.py).
enum Refusal : int32_t {
  bad_points = -1, bad_pointer = -2, bad_count = -3, bad_alignment = -4, bad_overlap = -5, bad_rules = -6,
  no_memory = -7, bad_range = -8
};

// 0, or that memory ran out: nothing may be thrown through C.
template <class Work> INGOT_INLINE int32_t guarded(Work work) {
  try {
    work();
  } catch (...) {  // std::bad_alloc, the only one: its header costs more than it tells
    return no_memory;
  }
  return 0;
}

}  // namespace
}  // namespace ingot
