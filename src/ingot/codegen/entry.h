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

struct Inputs {
  const Given* all;
  int64_t step, first;
  int n;

  INGOT_INLINE V at(int which, int component) const {
    const Given& x = all[which];
    if (step < x.lag) return V{};
    const real* p = x.data + (step - x.lag) * x.step + first * x.point + component * x.component;
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
    store(x.data + step * x.step + first * x.point + component * x.component, x.point, n, value);
  }
};

}  // namespace
}  // namespace ingot
