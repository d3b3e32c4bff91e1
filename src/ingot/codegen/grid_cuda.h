// Points of a grid by threads of a GPU: loads and stores, and where each operand has the value of a
// point. Stands after lane_cuda.h and points.h; what grid.h is for blocks of points.

namespace ingot {
namespace {

// ---- Memory. A place is the address of one point's value: there is no lane but the first. A complex
// number is read and written at once; torch lets it lie at multiples of its size alone.

using Place = char*;
struct alignas(2 * sizeof(real)) Pair {
  real re, im;
};
template <class X> INGOT_INLINE X get_one(Place place);
template <> INGOT_INLINE V get_one<V>(Place place) { return *reinterpret_cast<const real*>(place); }
template <> INGOT_INLINE C get_one<C>(Place place) {
  const Pair a = *reinterpret_cast<const Pair*>(place);
  return {a.re, a.im};
}
template <> INGOT_INLINE M get_one<M>(Place place) { return *place != 0; }
template <class X, bool unit, bool full> INGOT_INLINE X get(Place place, int, int) {
  return get_one<X>(place);
}
template <bool unit, bool full> INGOT_INLINE void put(Place place, int, int, V a) {
  *reinterpret_cast<real*>(place) = a;
}
template <bool unit, bool full> INGOT_INLINE void put(Place place, int, int, C a) {
  *reinterpret_cast<Pair*>(place) = {a.re, a.im};
}
template <bool unit, bool full> INGOT_INLINE void put(Place place, int, int, M a) {
  *place = char(a.is);
}

// ---- What a kernel runs on, handed over by value: addresses and numbers, the sizes of the axes, of
// which those before `first` are not in use, and the strides of each operand along them.

template <int operands, int numbers, int axes> struct Task {
  char* operand[operands];
  double number[numbers];
  long long points, first, sizes[axes], strides[operands][axes];

  INGOT_INLINE void locate(long long point, long long (&index)[axes]) const {
#pragma unroll
    for (int d = axes - 1; d >= 0; --d) {
      const long long rest = d > first ? point / sizes[d] : 0;
      index[d] = point - rest * sizes[d];
      point = rest;
    }
  }
  template <class X> INGOT_INLINE Place place(int k, const long long (&index)[axes]) const {
    long long offset = 0;
#pragma unroll
    for (int d = 0; d < axes; ++d) offset += index[d] * strides[k][d];
    return operand[k] + offset * bytes_of<X>;
  }
};

}  // namespace
}  // namespace ingot
