// Banded systems along an axis, components interleaved: entry (p, q) lies at a[p * width + q - p + h].
#pragma once
#include "newton.h"

namespace ingot {
namespace {

// A pivot below this part of its column may cost ten of sixteen digits: the lane is solved anew.
constexpr real small_pivot = 1e-10;

// Factor in place without pivoting; the lanes in which some pivot is small beside its column.
template <int n, int h> INGOT_CALL M band_factor(V* __restrict a) {
  constexpr int width = 2 * h + 1;
  M suspect{};
  for (int p = 0; p < n; ++p) {
    const int last = n - 1 - p < h ? n - 1 - p : h;
    V column{};
    for (int i = 1; i <= last; ++i) column += abs(a[(p + i) * width + h - i]);
    V& pivot = a[p * width + h];
    suspect |= abs(pivot) < splat(small_pivot) * column;
    pivot = splat(1) / pivot;
    for (int i = 1; i <= last; ++i) {
      V* row = a + (p + i) * width + h - i;
      row[0] *= pivot;
      for (int j = 1; j <= last; ++j) row[j] = fma(-row[0], a[p * width + h + j], row[j]);
    }
  }
  return suspect;
}

template <int n, int h> INGOT_CALL void band_solve(const V* __restrict a, V* __restrict x) {
  constexpr int width = 2 * h + 1;
  for (int p = 0; p < n; ++p)
    for (int i = 1; i <= h && p + i < n; ++i) x[p + i] = fma(-a[(p + i) * width + h - i], x[p], x[p + i]);
  for (int p = n - 1; p >= 0; --p) {
    V total = x[p];
    for (int j = 1; j <= h && p + j < n; ++j) total = fma(-a[p * width + h + j], x[p + j], total);
    x[p] = total * a[p * width + h];
  }
}

// The second routine: one lane at a time with partial pivoting, which widens the band upwards.
template <int n, int h> INGOT_CALL void band_pivoted(M doubt, const V* a0, V* x, int sides) {
  constexpr int width = 3 * h + 1;
  const int each = sides_at_once ? sides_at_once : sides;
  const Array<real, n * width> a;
  const Array<real, n * sides_at_once> b(n * each);
  for (int first = 0; first < sides; first += each, x += n * each)
    for (int lane = 0; lane < W; ++lane) {
      if (!lane_of(doubt, lane)) continue;
      for (int p = 0; p < n; ++p)
        for (int j = 0; j < width; ++j) a[p * width + j] = j <= 2 * h ? lane_of(a0[p * (2 * h + 1) + j], lane) : 0;
      for (int i = 0; i < n * each; ++i) b[i] = lane_of(x[i], lane);
      for (int p = 0; p < n; ++p) {
        int best = p;
        const int last = p + h < n - 1 ? p + h : n - 1, right = p + 2 * h < n - 1 ? p + 2 * h : n - 1;
        for (int i = p + 1; i <= last; ++i)
          if (magnitude(a[i * width + p - i + h]) > magnitude(a[best * width + p - best + h])) best = i;
        if (best != p) {
          for (int q = p; q <= right; ++q) exchange(a[p * width + q - p + h], a[best * width + q - best + h]);
          for (int s = 0; s < each; ++s) exchange(b[s * n + p], b[s * n + best]);
        }
        for (int i = p + 1; i <= last; ++i) {
          const real factor = a[i * width + p - i + h] / a[p * width + h];
          for (int q = p + 1; q <= right; ++q) a[i * width + q - i + h] -= factor * a[p * width + q - p + h];
          for (int s = 0; s < each; ++s) b[s * n + i] -= factor * b[s * n + p];
        }
      }
      for (int s = 0; s < each; ++s)
        for (int p = n - 1; p >= 0; --p) {
          real total = b[s * n + p];
          for (int q = p + 1; q <= p + 2 * h && q < n; ++q) total -= a[p * width + q - p + h] * b[s * n + q];
          b[s * n + p] = total / a[p * width + h];
        }
      for (int i = 0; i < n * each; ++i) set_lane(x[i], lane, b[i]);
    }
}

}  // namespace
}  // namespace ingot
