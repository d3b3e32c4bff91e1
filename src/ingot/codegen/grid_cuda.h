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
template <class X> INGOT_INLINE X get(Place place, int) { return get_one<X>(place); }
// A place is already shifted along all axes.
template <class X, int shift> INGOT_INLINE X get_shifted(Place place, int) {
  return get_one<X>(place);
}
INGOT_INLINE void put(Place place, int, V a) { *reinterpret_cast<real*>(place) = a; }
INGOT_INLINE void put(Place place, int, C a) { *reinterpret_cast<Pair*>(place) = {a.re, a.im}; }
INGOT_INLINE void put(Place place, int, M a) { *place = char(a.is); }

// ---- What a kernel runs on, handed over by value: addresses and numbers, the sizes of the axes, of
// which those before `first` are not in use, and the strides of each operand along them.

template <int operands, int numbers, int axes> struct Task {
  char* operand[operands];
  double number[numbers];
  long long points;
  int first, sizes[axes], strides[operands][axes];

  // Divisions of 64 bits take as long as all the rest of a short kernel.
  INGOT_INLINE void locate(long long point, int (&index)[axes]) const {
    if (points >> 31)
      split<long long>(point, index);
    else
      split<unsigned>(unsigned(point), index);
  }
  template <class I> INGOT_INLINE void split(I point, int (&index)[axes]) const {
#pragma unroll
    for (int d = axes - 1; d >= 0; --d) {
      const I rest = d > first ? point / I(sizes[d]) : I(0);
      index[d] = int(point - rest * I(sizes[d]));
      point = rest;
    }
  }
  template <class X> INGOT_INLINE Place place(int k, const int (&index)[axes]) const {
    long long offset = 0;
#pragma unroll
    for (int d = 0; d < axes; ++d) offset += (long long)index[d] * strides[k][d];
    return operand[k] + offset * bytes_of<X>;
  }
  // The same some points back along each axis, which wraps around.
  template <class X, int... shift>
  INGOT_INLINE Place shifted(int k, const int (&index)[axes]) const {
    const int by[] = {shift...};
    long long offset = 0;
#pragma unroll
    for (int d = 0; d < axes; ++d) {
      int i = index[d] - by[d];
      if (by[d] > 0) i += i < 0 ? sizes[d] : 0;
      if (by[d] < 0) i -= i >= sizes[d] ? sizes[d] : 0;
      offset += (long long)i * strides[k][d];
    }
    return operand[k] + offset * bytes_of<X>;
  }
};

}  // namespace
}  // namespace ingot
