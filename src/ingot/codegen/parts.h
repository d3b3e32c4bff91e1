// Steps that failed, taken in parts, and derivatives through the parts (program/substeps.py).
#pragma once
#include <cstdint>

#include "newton.h"

namespace ingot {
namespace {

// Each part that was taken by a solve of n unknowns: in which lanes, from where to where in the
// step, what was carried into it, what its equations read, and its unknowns. lanes: those that came
// to the end of their step.
template <int n, int given, int carried> struct Parts {
  struct Taken {
    M lanes;
    V begin, end, c[carried + 1], g[given], u[n];
  };
  Taken* taken = nullptr;
  int count = 0, room = 0;
  M lanes{};
  Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() { delete[] taken; }

  // Room for one more part; null where memory ran out, which a GPU does not throw.
  Taken* add() {
    if (count == room) {
      room = room ? 2 * room : 8;
      Taken* more = new Taken[room];
      if (!more) return nullptr;
      for (int i = 0; i < count; ++i) more[i] = taken[i];
      delete[] taken;
      taken = more;
    }
    return &taken[count++];
  }
};

// Halve the step of every lane that failed until its parts converge (newton.py does the same).
// first: what is carried into the first part; next: where unknowns start, what equations read and
// what else is carried on; follow: the unknowns that are carried on; kept: may be null.
template <int n, int given, int carried, class First, class Next, class Follow, class Newton>
INGOT_COLD void take_in_parts(Search<n, true>& s, const V* g, int level, Parts<n, given, carried>* kept, First first,
                              Next next, Follow follow, Newton newton) {
  const int64_t whole = int64_t(1) << level;
  int64_t begin[W] = {}, length[W];
  for (int lane = 0; lane < W; ++lane) length[lane] = whole >> 1;
  V c[carried + 1] = {}, f[carried + 1] = {}, h[given];
  M going = s.alive & no(s.done), ended{};
  first(g, c);
  Search<n, true> t;
  t.in_parts = true;
  while (any(going)) {
    V from{}, to{};
    for (int lane = 0; lane < W; ++lane) {
      set_lane(from, lane, real(double(begin[lane]) / double(whole)));
      set_lane(to, lane, real(double(begin[lane] + length[lane]) / double(whole)));
    }
    next(g, c, from, to, t.u, h, f);
    newton(h, t.begin(going));
    const M good = going & t.done;
    s.steps += t.steps, s.redone += t.redone;
    s.size = select(going, t.size, s.size), s.first = select(going, t.first, s.first);
    s.bad = (s.bad & no(going)) | (t.bad & going);
    for (int i = 0; i < n; ++i) s.u[i] = select(going, t.u[i], s.u[i]);
    if (kept && any(good)) {
      auto* part = kept->add();
      if (!part) break;
      part->lanes = good, part->begin = from, part->end = to;
      copy(c, part->c, carried), copy(h, part->g, given), copy(t.u, part->u, n);
    }
    follow(t.u, f);
    for (int i = 0; i < carried; ++i) c[i] = select(good, f[i], c[i]);
    for (int lane = 0; lane < W; ++lane) {
      if (!lane_of(going, lane)) continue;
      if (lane_of(good, lane)) {
        begin[lane] += length[lane];
        length[lane] = begin[lane] & -begin[lane];
      } else {
        length[lane] >>= 1;
      }
      if (begin[lane] == whole) set_lane(ended, lane, true);
      if (begin[lane] == whole || length[lane] == 0) set_lane(going, lane, false);
    }
  }
  s.done |= ended;
  if (kept) kept->lanes = ended;
}

// Tangents along as many directions as sides: dg of leaves, x of the unknowns. first, along, follow,
// linear: of what is carried into the first part; of a right-hand side and what else is carried on;
// of the unknowns that are carried on; the solution.
template <int n, int given, int carried, class First, class Along, class Follow, class Linear>
INGOT_COLD void along_parts(const Parts<n, given, carried>& parts, const V* g, const V* dg, int leaves, V* x,
                            int sides, First first, Along along, Follow follow, Linear linear) {
  constexpr int width = carried + 1;
  const int each = sides_at_once ? sides_at_once : sides;
  const Array<V, sides_at_once * width> dc(each * width), df(each * width);
  const Array<V, sides_at_once * n> b(each * n), y(each * n);
  for (int begin = 0; begin < sides; begin += each, dg += each * leaves, x += each * n) {
    for (int s = 0; s < each; ++s) first(g, dg + s * leaves, &dc[s * width]);
    for (int p = 0; p < parts.count; ++p) {
      const auto& t = parts.taken[p];
      for (int s = 0; s < each; ++s)
        along(g, t.c, t.begin, t.end, t.u, dg + s * leaves, &dc[s * width], &b[s * n], &df[s * width]);
      linear(t.g, t.u, b.data, y.data, each);
      for (int s = 0; s < each; ++s) {
        follow(&y[s * n], &df[s * width]);
        for (int i = 0; i < carried; ++i)
          dc[s * width + i] = select(t.lanes, df[s * width + i], dc[s * width + i]);
      }
      for (int i = 0; i < each * n; ++i) x[i] = select(t.lanes & parts.lanes, y[i], x[i]);
    }
  }
}

// Adjoints of leaves dg, zero before, from those of the unknowns; x, which `linear` solved for the
// whole step, becomes zero. adjoint: the solution of the transposed system; back: what it and the
// adjoints of what is carried on add to leaves, and those of what was carried; follow: adds those of
// unknowns that were carried on; first: what those of the first part's add to leaves.
template <int leaves, int n, int given, int carried, class First, class Back, class Follow, class Adjoint>
INGOT_COLD void back_through_parts(const Parts<n, given, carried>& parts, const V* g, const V* bars, V* dg,
                                   V* x, First first, Back back, Follow follow, Adjoint adjoint) {
  V left[n], b[n], y[n], dc[carried + 1] = {}, df[carried + 1];
  const Array<V, leaves + 1> more;
  copy(bars, left, n);
  for (int p = parts.count - 1; p >= 0; --p) {
    const auto& t = parts.taken[p];
    copy(left, b, n);
    follow(dc, b);
    adjoint(t.g, t.u, b, y, 1);
    back(g, t.c, t.begin, t.end, t.u, y, dc, more.data, df);
    for (int i = 0; i < leaves; ++i) dg[i] += select(t.lanes & parts.lanes, more[i], V{});
    for (int i = 0; i < carried; ++i) dc[i] = select(t.lanes, df[i], dc[i]);
    for (int i = 0; i < n; ++i) left[i] = select(t.lanes, V{}, left[i]);
  }
  first(g, dc, more.data);
  for (int i = 0; i < leaves; ++i) dg[i] += select(parts.lanes, more[i], V{});
  for (int i = 0; i < n; ++i) x[i] = select(parts.lanes, V{}, x[i]);
}

}  // namespace
}  // namespace ingot
