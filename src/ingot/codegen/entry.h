// The C entry of a kernel: any number of steps for a range of points, histories read where they lie.
#pragma once

namespace ingot {
namespace {

// Where an input of a step lies: the value `lag` steps back, zero before the first.
struct Given {
  const real* data;
  int64_t step, point, component;
  int64_t lag;
};

struct Gives {
  real* data;
  int64_t step, point, component;
};

// What is asked for ahead: the next step of a block lies a whole batch away, and has come when the tile
// (steps.h) is there, 5 to 10 % of a return map at 10 000 points. Points apart in memory: where their
// components lie side by side, each asks for another line of the next step, or of blocks that follow,
// a fourth of elasticity.
[[maybe_unused]] INGOT_CALL V load_far(const Given& x, const real* p, int component, int n) {
  constexpr int line = 64 / sizeof(real), blocks_ahead = 8;
  const int64_t next = x.step ? x.step : blocks_ahead * W * x.point;
  if (x.lag == 0) ahead(p + next + (x.component == 1 ? (line - 1) * component : 0));
  return n == W ? load_all(p, x.point) : load(p, x.point, n);
}

// Whether the points of a block lie side by side and are all there, as most are.
INGOT_INLINE bool are_together(int64_t point, int n) { return W == 1 || (point == 1 && n == W); }

// An input at a step and a block of points. Its place is found once: what is stored between two of its
// components might be where it lies, for all that a compiler knows.
struct InputRow {
  const Given* x;
  const real* first;  // of the first component; null before there is a value
  int64_t step, component;
  int n;
  bool together;

  INGOT_INLINE V at(int which) const {
    if (!first) return V{};
    const real* p = first + which * component;
    if (!together) return load_far(*x, p, which, n);
    ahead(p + step);
    return load(p, 1, W);
  }
};

struct Inputs {
  const Given* all;
  int64_t step, first;
  int n;

  INGOT_INLINE InputRow row(int which) const {
    const Given& x = all[which];
    const real* p = x.data + (step - x.lag) * x.step + first * x.point;
    return {&x, step < x.lag ? nullptr : p, x.step, x.component, n, are_together(x.point, n)};
  }
  INGOT_INLINE M lanes() const { return ingot::lanes(n); }
};

// An output at a step and a block of points.
struct OutputRow {
  real* first;
  int64_t step, point, component;
  int n;
  bool together;

  INGOT_INLINE void put(int which, V value) const {
    real* p = first + which * component;
    ahead<true>(p + step);
    if (together)
      store(p, 1, W, value);
    else
      store(p, point, n, value);
  }
};

struct Outputs {
  const Gives* all;
  int64_t step, first;
  int n;

  INGOT_INLINE OutputRow row(int which) const {
    const Gives& x = all[which];
    real* p = x.data + step * x.step + first * x.point;
    return {p, x.step, x.point, x.component, n, are_together(x.point, n)};
  }
};

}  // namespace
}  // namespace ingot
