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
  return load(p, x.point, n);
}

struct Inputs {
  const Given* all;
  int64_t step, first;
  int n;

  INGOT_INLINE V at(int which, int component) const {
    const Given& x = all[which];
    if (step < x.lag) return V{};
    const real* p = x.data + (step - x.lag) * x.step + first * x.point + component * x.component;
    if (W > 1 && (x.point != 1 || n != W)) return load_far(x, p, component, n);
    ahead(p + x.step);
    return load(p, x.point, n);
  }
  INGOT_INLINE M lanes() const { return ingot::lanes(n); }
};

struct Outputs {
  const Gives* all;
  int64_t step, first;
  int n;

  INGOT_INLINE void put(int which, int component, V value) const {
    const Gives& x = all[which];
    real* p = x.data + step * x.step + first * x.point + component * x.component;
    ahead<true>(p + x.step);
    store(p, x.point, n, value);
  }
};

}  // namespace
}  // namespace ingot
