// Newton's method for a block of points: which go on, which have converged, and how far to step.
#pragma once
#include <cstdint>

#include "lanes.h"

namespace ingot {
namespace {

enum Reason : int8_t { converged = 0, out_of_steps = 1, not_finite = 2 };
enum Criterion : int8_t { nothing = 0, by_abs_tol = 1, by_rel_tol = 2, by_rounding = 3 };
enum Line : int32_t { full_step = 0, backtracking = 1, strong_wolfe = 2 };

// When a solve stops and how far it steps; read at every call, never compiled in (options.py).
using Knobs = ::ingot_rules;

struct Reports {
  struct One {
    int8_t* reason;
    int32_t* iterations;
    real* residual;
    int32_t* pivoted;
    int8_t* accepted;  // by which criterion (status.py); may be null
  };
  const One* all;
  int64_t at, points;
  int n;

  // Of the points of a block, asking for where the next step is reported: a whole batch away.
  template <class T, class X> INGOT_INLINE void put(T* table, X values) const {
    ahead<true>(table + at + points);
    write(table + at, n, values);
  }
};

// The part of the residual that an update may leave in the linearised equations: Newton's method
// then gains six digits an update (two in single precision), where exact updates double them.
[[maybe_unused]] constexpr real linear_tolerance = sizeof(real) == 8 ? 1e-6 : 1e-2;
// The part of its terms that an equation may leave of a tangent: tangents are held to 1e-9, and to
// some 1e3 times rounding in single precision.
[[maybe_unused]] constexpr real tangent_tolerance = sizeof(real) == 8 ? 1e-10 : 1e-4;
[[maybe_unused]] constexpr bool is_single = sizeof(real) == 4;
// The part of a variable that an update may change which confirms a solution (newton.py).
[[maybe_unused]] constexpr real largest_confirmed_change = 1e-2;
// An update that brings the residual down by a factor of ten has proven itself, and needs no check.
[[maybe_unused]] constexpr real well_down = 0.1;
constexpr real smallest_real = sizeof(real) == 8 ? 0x1p-1022 : 0x1p-126f;  // of full precision
constexpr real largest_real = sizeof(real) == 8 ? 0x1.fffffffffffffp+1023 : 0x1.fffffep+127f;
constexpr real rounding = sizeof(real) == 8 ? 0x1p-52 : 0x1p-23;

enum Verdict { stop, update, retry };

// What a solve inside the residuals of another has to do with.
struct Around {
  const Knobs* knobs;
  Reports* reports;
  M lanes;
};

INGOT_INLINE real magnitude(real a) { return a < 0 ? -a : a; }
INGOT_INLINE void exchange(real& a, real& b) {
  const real c = a;
  a = b, b = c;
}
[[maybe_unused]] INGOT_INLINE void copy(const V* from, V* to, int n) {
  for (int i = 0; i < n; ++i) to[i] = from[i];
}

// Subtract a row times a factor from another, which lies elsewhere: nothing waits for what was stored.
INGOT_INLINE void subtract(int n, real factor, const real* __restrict row, real* __restrict from) {
  for (int j = 0; j < n; ++j) from[j] -= factor * row[j];
}

// Gaussian elimination with partial pivoting of one lane, in place: n rows of a matrix with its
// right-hand sides behind it, which the unknowns replace.
INGOT_COLD void eliminate(int n, int width, real* a) {
  for (int p = 0; p < n; ++p) {
    real* const top = a + p * width;
    real* best = top;
    for (real* row = top + width; row < a + n * width; row += width)
      if (magnitude(row[p]) > magnitude(best[p])) best = row;
    for (int j = 0; j < width; ++j) exchange(top[j], best[j]);
    for (real* row = top + width; row < a + n * width; row += width) {
      const real factor = row[p] / top[p];
      if (factor != 0) subtract(width - p - 1, factor, top + p + 1, row + p + 1);
    }
  }
  for (int p = n - 1; p >= 0; --p)
    for (int s = n; s < width; ++s) {
      real total = a[p * width + s];
      for (int j = p + 1; j < n; ++j) total -= a[p * width + j] * a[j * width + s];
      a[p * width + s] = total / a[p * width + p];
    }
}

// The second routine: Jacobian column by column, then pivoted elimination, for the lanes in doubt.
template <int n, bool transposed = false, class Slopes>
INGOT_COLD void pivoted(M doubt, const V* g, const V* u, const V* b, V* x, int sides, Slopes slopes) {
  V direction[n];
  const auto find_column = [&](int j, V* column) {
    for (int i = 0; i < n; ++i) direction[i] = splat(i == j);
    slopes(g, u, direction, column);
  };
  if constexpr (W == 1) {  // a thread has little memory: one matrix, filled anew for each side
    const Array<real, n * (n + 1)> a;
    V column[n];
    for (int s = 0; s < sides; ++s, b += n, x += n) {
      for (int j = 0; j < n; ++j) {
        find_column(j, column);
        for (int i = 0; i < n; ++i)
          a[transposed ? j * (n + 1) + i : i * (n + 1) + j] = lane_of(column[i], 0);
      }
      for (int i = 0; i < n; ++i) a[i * (n + 1) + n] = lane_of(b[i], 0);
      eliminate(n, n + 1, a.data);
      for (int i = 0; i < n; ++i) set_lane(x[i], 0, a[i * (n + 1) + n]);
    }
  } else {
    const Array<V, n * n> jacobian;
    for (int j = 0; j < n; ++j) find_column(j, &jacobian[j * n]);
    const int width = n + sides;
    const Array<real, n * n> a(n * width);
    for (int lane = 0; lane < W; ++lane) {
      if (!lane_of(doubt, lane)) continue;
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) a[i * width + j] = lane_of(jacobian[transposed ? i * n + j : j * n + i], lane);
        for (int s = 0; s < sides; ++s) a[i * width + n + s] = lane_of(b[s * n + i], lane);
      }
      eliminate(n, width, a.data);
      for (int s = 0; s < sides; ++s)
        for (int i = 0; i < n; ++i) set_lane(x[s * n + i], lane, a[i * width + n + s]);
    }
  }
}

// By two sums each, of which neither waits for the other.
template <int n> INGOT_INLINE V sum(const V* x) {
  V even = x[0], odd{};
  for (int i = 1; i < n - 1; i += 2) odd += x[i], even += x[i + 1];
  if (n % 2 == 0) odd += x[n - 1];
  return even + odd;
}

template <int n> INGOT_INLINE V product(const V* a, const V* b) {
  V even = a[0] * b[0];
  if (n == 1) return even;
  V odd = a[1] * b[1];
  for (int i = 2; i < n - 1; i += 2) even = fma(a[i], b[i], even), odd = fma(a[i + 1], b[i + 1], odd);
  if (n % 2) even = fma(a[n - 1], b[n - 1], even);
  return even + odd;
}

// The lanes in which a sum of so many squares is right to rounding: it did not overflow, and terms
// that underflowed are too small for it.
INGOT_INLINE M summed(V squares, int count) {
  return (squares >= splat(real(count) * (smallest_real / rounding))) & finite(squares);
}

// The Euclidean norm with every entry in parts of the largest, which overflows only if the norm does.
INGOT_RARE V scaled_norm(const V* x, int count) {
  V largest{}, total{};
  for (int i = 0; i < count; ++i) total += abs(x[i]);
  if (all(total == V{})) return V{};  // nothing at all, as of right-hand sides where nothing yields
  total = V{};
  for (int i = 0; i < count; ++i) largest = max(largest, abs(x[i]));
  const V scale = max(splat(smallest_real), min(splat(largest_real), largest));
  for (int i = 0; i < count; ++i) total = fma(x[i] / scale, x[i] / scale, total);
  return scale * sqrt(total);
}

INGOT_INLINE V norm(const V* x, int count) {
  V squares = x[0] * x[0];
  for (int i = 1; i < count; ++i) squares = fma(x[i], x[i], squares);
  const M plain = summed(squares, count);
  return all(plain) ? sqrt(squares) : select(plain, sqrt(squares), scaled_norm(x, count));
}

// Weights between a half and three halves that no error is likely to know.
struct Weights {
  uint32_t seed = 1;
  INGOT_INLINE V next() {
    seed = seed * 1664525u + 1013904223u;
    return splat(real(0.5) + real(seed >> 8) / real(1 << 24));
  }
};

// The lanes in which solutions of J x = b are not as good as tangents should be: one combination of
// all right-hand sides is put back into the equations. What an equation may leave is measured by its
// own terms, since strains stand beside stresses in Pa: unknowns with weights of their own tell how
// large those are. Of transposed systems the slopes J s tell s . J^T x = x . J s: one s, in the units
// of the unknowns, is tried on all of them.
// Lanes whose solve failed (u is NaN) have NaN tangents, also where J does not depend on u.
template <int n, bool transposed = false, class Slopes>
[[maybe_unused]] INGOT_CALL M unsolved(const V* g, const V* u, const V* b, V* x, int sides, Slopes slopes) {
  const M failed = u[0] != u[0];
  if (any(failed))
    for (int i = 0; i < n * sides; ++i) x[i] = select(failed, splat(nan), x[i]);
  V side[n] = {}, solution[n] = {}, left[n];
  M doubt{};
  Weights weights;
  if (transposed) {
    for (int i = 0; i < n; ++i) solution[i] = weights.next() * select(u[i] == V{}, splat(1), u[i]);
    slopes(g, u, solution, left);
    for (int s = 0; s < sides; ++s, b += n, x += n) {
      V error{}, terms{};
      for (int i = 0; i < n; ++i) {
        const V one = x[i] * left[i], other = b[i] * solution[i];
        error += one - other, terms += abs(one) + abs(other);
      }
      doubt |= no(abs(error) <= splat(tangent_tolerance) * terms);
    }
    return no(failed) & doubt;
  }
  for (int s = 0; s < sides; ++s, b += n, x += n) {
    const V weight = weights.next();
    for (int i = 0; i < n; ++i) {
      side[i] = fma(weight, b[i], side[i]);
      solution[i] = fma(weight, x[i], solution[i]);
    }
  }
  V terms[n];
  slopes(g, u, solution, left);
  for (int i = 0; i < n; ++i) solution[i] *= weights.next();
  slopes(g, u, solution, terms);
  for (int i = 0; i < n; ++i)
    doubt |= no(abs(left[i] - side[i]) <= splat(tangent_tolerance) * (abs(terms[i]) + abs(side[i])));
  return no(failed) & doubt;
}

// A solve under way. u: unknowns, r: residuals, d: update; base and old: u and r before the update.
// squares: the sum of those of r; size, first, before: norms of r, now, at the start and before the update.
// parts: its step may be taken in parts (parts.h), so that points stop by themselves, whatever others
// of the batch do. In single precision, besides: met: the points whose residuals before the update met
// the tolerances, near: those that had come as far as they can; reach: the norm of r after the whole update.
template <int n, bool parts = false> struct Search {
  V u[n], r[n], d[n], base[n], old[n];
  V squares, size, first, before, alpha, steps, redone, reach;
  M alive, active, done, bad, met, near;
  int updates, tries;
  bool proven;
  bool in_parts = false;  // the step is a part of one that failed

  Search& begin(M lanes) {
    alive = active = lanes;
    done = bad = met = near = M{};
    steps = redone = size = before = reach = V{};
    updates = tries = 0;
    proven = true;
    return *this;
  }

  // See the residuals at u, before anything judges them.
  INGOT_INLINE void measure() { squares = product<n>(r, r); }

  // Judge the residuals at u: stop, update, or evaluate again at shorter steps. variable: to which
  // each unknown belongs.
  INGOT_INLINE Verdict judge(const Knobs& k, [[maybe_unused]] const int* variable) {
    size = select(active, sqrt(squares), size);
    const M rare = active & no(summed(squares, n));
    if (__builtin_expect(any(rare), 0)) size = select(rare, scaled_norm(r, n), size);
    if (is_single && tries == 1) reach = size;
    if (tries && k.linesearch != full_step && again(k)) return retry;
    if (updates == 0) first = size;
    if (is_single && tries) settle(k, variable);
    M now = size < splat(k.abs_tol);
    if (updates) now |= (size < splat(k.rel_tol) * first) & (parts && in_parts ? settled(k) : alive);
    if (is_single) {
      met = now;
      now = size == V{};
    }
    bad |= active & no(finite(size));
    done = (done | (active & now)) & no(bad);
    // a point that stopped stays as it is, however long others of its block go on
    active = active & no(bad) & (updates < k.min_its && !parts && !is_single ? active : no(done));
    if (is_single && updates + 1 >= k.max_its) {  // one update more confirms what has met the tolerances, or two
      active = active & (met | near);
      return any(active) && updates <= k.max_its ? update : stop;
    }
    return any(active) && updates + 1 < k.max_its ? update : stop;
  }

  // The points whose update was small beside their unknowns, as it must be in a part of a step.
  INGOT_RARE M settled(const Knobs& k) {
    V moved[n];
    for (int i = 0; i < n; ++i) moved[i] = u[i] - base[i];
    return norm(moved, n) < splat(k.substep_del_tol) * (norm(u, n) + splat(k.abs_tol));
  }

  // newton.py, measure_updates: the largest part by which the update changes a variable, and the next.
  INGOT_RARE V largest_change(const int* variable, V& following) {
    V moved[n] = {}, all[n] = {}, change{};
    int count = 0;
    for (int i = 0; i < n; ++i) {
      V &by = moved[variable[i]], &of = all[variable[i]];
      by = max(by, abs(d[i])), of = max(of, abs(base[i]));
      count = count > variable[i] ? count : variable[i] + 1;
    }
    following = V{};
    for (int i = 0; i < count; ++i) {
      const V part = moved[i] / max(splat(smallest_real), all[i]);
      following = max(following, min(change, part));
      change = max(change, part);
    }
    if (count == 1) following = change;
    return change;
  }

  // newton.py, find_ended and find_confirmed: points that had come as far before the update as the
  // tolerances ask, or as single precision lets them, are done and put back if the update confirms
  // them.
  INGOT_INLINE void settle(const Knobs& k, const int* variable) {
    const M stuck = no(size < splat(0.5) * before), was_near = near;
    near = M{};
    if (!any(active & (met | stuck))) return;
    V following;
    const V change = largest_change(variable, following);
    const M lost = change <= splat(1e-6), little = change <= splat(1e-4);
    const M down = (before <= splat(1e-5) * first) | (little & (before <= splat(1e-2) * first));
    const M few = (following <= splat(1e-6)) & (before <= first);
    const M ended = active & ((met & lost) | (stuck & (met | down | few)));
    const M low = (reach <= max(splat(1e-5), splat(k.rel_tol)) * first) | (reach < splat(k.abs_tol));
    const M stays = low | (little & (reach <= splat(1e-2) * first));
    const M unseen = few & (reach <= splat(8) * before);
    const M agrees = (stays & (change <= splat(largest_confirmed_change))) | unseen;
    const M confirmed = ended & (lost | (was_near & agrees));
    near = ended;
    for (int i = 0; i < n; ++i) {
      u[i] = select(confirmed, base[i], u[i]);
      r[i] = select(confirmed, old[i], r[i]);
    }
    size = select(confirmed, before, size);
    done |= confirmed;
    active = active & no(confirmed);
  }

  // Whether some point must try a shorter step; then u holds it. The decrease is judged in parts of
  // the norm before, whose square may be no number.
  INGOT_INLINE bool again(const Knobs& k) {
    const V part = size / before;
    V promised = splat(1);
    if (k.linesearch == backtracking) {
      promised = V{};
      for (int i = 0; i < n; ++i) promised = fma(splat(-2) * (old[i] / before), d[i] / before, promised);
    }
    const V bound = splat(1) - splat(k.linesearch_stopping_criteria) * alpha * promised;
    const M accepted = no(active) | (part * part <= bound) | (size <= splat(k.abs_tol));
    if (all(accepted) || tries + 1 >= k.max_linesearch_iterations) return false;
    alpha = select(accepted, alpha, alpha / splat(k.linesearch_cutback));
    for (int i = 0; i < n; ++i) u[i] = select(accepted, u[i], fma(alpha, d[i], base[i]));
    ++tries;
    return true;
  }

  // Check an update that did not bring the residual down well against the linearised equations;
  // whether `redo` had to supply it anew for some point, so that u must be evaluated again.
  template <class Slopes, class Redo> INGOT_INLINE bool mended(Lent* g, Slopes slopes, Redo redo) {
    if (proven) return false;
    proven = true;
    const V from = before * before;
    const M proved = no(active) | (summed(from, n) & (squares <= splat(well_down * well_down) * from));
    if (all(proved)) return false;
    V left[n];
    parked<n>(u, [&]() INGOT_LAMBDA {
      parked<n>(old, [&]() INGOT_LAMBDA {
        held<n>(base, [&](const V* at) {
          held<n>(d, [&](const V* by) { held<n>(left, [&](V* to) { slopes(g, at, by, to); }); });
        });
      });
    });
    for (int i = 0; i < n; ++i) left[i] += old[i];
    const M doubt = no(proved) & no(norm(left, n) <= splat(linear_tolerance) * before);
    if (!any(doubt)) return W == 1;  // evaluated again, so that nothing else lives on across the calls
    again_from(doubt, redo);
    for (int i = 0; i < n; ++i) u[i] = select(doubt, base[i] + d[i], u[i]);
    return true;
  }

  template <class Redo> INGOT_INLINE void again_from(M doubt, Redo redo) {
    V b[n];
    for (int i = 0; i < n; ++i) b[i] = -old[i];
    parked<n>(u, [&]() INGOT_LAMBDA {
      held<n>(base, [&](const V* at) { held<n>(d, [&](V* x) { redo(doubt, at, b, x); }); });
    });
    if (W == 1)
      for (int i = 0; i < n; ++i) old[i] = -b[i];
    redone += select(doubt, splat(1), V{});
  }

  // Move the active points by the update d; `redo` supplies it anew where it is in doubt.
  template <class Redo> INGOT_INLINE void advance(M suspect, Redo redo) {
    for (int i = 0; i < n; ++i) base[i] = u[i], old[i] = r[i];
    before = size;
    const M doubt = active & (suspect | no(finite(sum<n>(d))));
    if (any(doubt)) again_from(doubt, redo);
    alpha = splat(1);
    for (int i = 0; i < n; ++i) u[i] = W == 1 ? base[i] + d[i] : select(active, u[i] + d[i], u[i]);
    steps += select(active, splat(1), V{});
    ++updates;
    tries = 1;
    proven = false;
  }

  // Write what became of every point; unknowns of those that failed become NaN.
  INGOT_INLINE void report(const Reports& to, int which, const Knobs& k) {
    const Reports::One& one = to.all[which];
    const M absolute = size < splat(k.abs_tol), relative = size < splat(k.rel_tol) * first;
    const N failed = choose(bad, whole(not_finite), whole(out_of_steps));
    to.put(one.reason, choose(done, whole(converged), failed));
    to.put(one.iterations, steps);
    to.put(one.residual, size);
    to.put(one.pivoted, redone);
    if (one.accepted) {
      const N looser = choose(relative, whole(by_rel_tol), whole(by_rounding));
      const N by = choose(absolute, whole(by_abs_tol), looser);
      to.put(one.accepted, choose(done, by, whole(nothing)));
    }
    if (!all(done | no(alive)))
      for (int i = 0; i < n; ++i) u[i] = select(done, u[i], splat(nan));
  }
};

}  // namespace
}  // namespace ingot
