// Whole powers that are known when a kernel is compiled, for blocks of points and for one (lanes.h,
// lane_cuda.h).
#pragma once
#include "lanes.h"

namespace ingot {
namespace {

constexpr int leading_bit(unsigned m) { return m > 1 ? 1 + leading_bit(m >> 1) : 0; }
// base^m from x^(m >> bits), carried as x + low and base as base + base_low: squares from the leading
// bit of m on, so that nothing is larger or smaller than both base and the result.
template <unsigned m, int bits, bool two> INGOT_INLINE void powers(D base, D base_low, D& x, D& low) {
  if constexpr (bits > 0) {
    const D square = x * x;
    low = fma(x + x, low, fma(x, x, -square));
    x = square;
    if constexpr ((m >> (bits - 1) & 1) != 0) {
      const D product = x * base;
      low = fma(low, base, fma(x, base, -product));
      if constexpr (two) low = fma(x, base_low, low);
      x = product;
    }
    powers<m, bits - 1, two>(base, base_low, x, low);
  }
}
// x^n for a whole n that is known, to 0.51 units in the last place, and to 2 where the result is about
// the smallest normal number. n is at most 2^20 in size: from there on the squares of `low` count.
// At n = 31 it takes 0.4 of the time of pow, which is no better, and slow for negative x.
template <int n> INGOT_CALL D pown(D x) {
  constexpr unsigned m = n < 0 ? -unsigned(n) : unsigned(n);
  static_assert(m > 0 && m <= 1u << 20);
  D base = x, base_low{};
  if constexpr (n < 0) {  // first of all, for x^-n overflows where x^n has digits left
    base = 1 / x;
    base_low = fma(-base, x, 1) * base;
    base_low = select(finite(base_low), base_low, D{});
  }
  D y = base, low = base_low;
  powers<m, leading_bit(m), n < 0>(base, base_low, y, low);
  // past the range of doubles nothing is left in low but NaN, and -0 + 0 is +0
  return select(finite(low) & (low != 0), y + low, y);
}
template <int n> INGOT_INLINE Floats pown(Floats a) {
  return through_double([](D x) { return pown<n>(x); }, a);
}

}  // namespace
}  // namespace ingot
