// Runs the lines of a kernel over points and steps; a kernel's entries call it.
#pragma once

extern "C" int ingot_lanes() { return W; }

namespace ingot {
namespace {

// Steps [first_step, first_step + steps) of the points [begin, end); reports are (steps, points).
template <class Point>
INGOT_INLINE void run(Point point, const ingot_given* in, const ingot_gives* out, const Knobs* knobs,
                      const Reports::One* reports, int64_t points, int64_t first_step, int64_t steps, int64_t begin,
                      int64_t end) {
  for (int64_t i = begin; i < end; i += W) {
    const int n = int(end - i < W ? end - i : W);
    for (int64_t k = 0; k < steps; ++k) {
      const Inputs given{in, first_step + k, i, n};
      const Outputs gives{out, first_step + k, i, n};
      Reports to{reports, k * points + i, n};
      point(given, gives, knobs, to);
    }
  }
}

}  // namespace
}  // namespace ingot
