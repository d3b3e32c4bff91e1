// Blocks of points of a grid: loads and stores with any strides, and the loop over all rows by all
// threads. Stands after lanes.h and points.h.
#include <type_traits>
#include <utility>

namespace ingot {
namespace {

// ---- Memory. Strides count elements.

struct Place {
  char* at;
  int64_t stride;
};

// The block whose lane i is lane index(i) of two blocks one after the other.
template <class F, std::size_t... i>
INGOT_INLINE V picked(V a, V b, F index, std::index_sequence<i...>) {
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(a, b, index(int(i))...);
#else
  return __builtin_shuffle(a, b, M{index(int(i))...});
#endif
}
struct Even { constexpr int operator()(int i) const { return 2 * i; } };
struct Odd { constexpr int operator()(int i) const { return 2 * i + 1; } };
struct Low { constexpr int operator()(int i) const { return i % 2 * W + i / 2; } };
struct High { constexpr int operator()(int i) const { return i % 2 * W + (i + W) / 2; } };
template <class F> INGOT_INLINE V picked(V a, V b, F index) {
  return picked(a, b, index, std::make_index_sequence<W>{});
}

// Lane i is element j + i; `unit` and `full` promise a stride of 1 and n = W.
template <class X, bool unit, bool full> INGOT_INLINE X get(Place place, int64_t j, int n) {
  const auto lane = [&](int i) { return (j + (full || i < n ? i : n - 1)) * place.stride; };
  const real* p = reinterpret_cast<const real*>(place.at);
  if constexpr (std::is_same_v<X, V>) {
    if constexpr (unit && full) {
      V a;
      __builtin_memcpy(&a, p + j, sizeof a);
      return a;
    } else
      return make<V>([&](int i) { return p[lane(i)]; });
  } else if constexpr (std::is_same_v<X, C>) {
    if constexpr (unit && full) {
      V a, b;
      __builtin_memcpy(&a, p + 2 * j, sizeof a);
      __builtin_memcpy(&b, p + 2 * j + W, sizeof b);
      return {picked(a, b, Even{}), picked(a, b, Odd{})};
    } else
      return {make<V>([&](int i) { return p[2 * lane(i)]; }),
              make<V>([&](int i) { return p[2 * lane(i) + 1]; })};
  } else {
    const char* q = place.at;
    return make<M>([&](int i) { return -int(q[lane(i)] != 0); });
  }
}
template <class X> INGOT_INLINE X get_one(Place place) {
  const real* p = reinterpret_cast<const real*>(place.at);
  if constexpr (std::is_same_v<X, V>)
    return splat(p[0]);
  else if constexpr (std::is_same_v<X, C>)
    return {splat(p[0]), splat(p[1])};
  else
    return splat(*place.at != 0) != 0;
}
template <bool unit, bool full> INGOT_INLINE void put(Place place, int64_t j, int n, V a) {
  real* p = reinterpret_cast<real*>(place.at);
  if constexpr (unit && full)
    __builtin_memcpy(p + j, &a, sizeof a);
  else
    for (int i = 0; i < n; ++i) p[(j + i) * place.stride] = a[i];
}
template <bool unit, bool full> INGOT_INLINE void put(Place place, int64_t j, int n, C a) {
  real* p = reinterpret_cast<real*>(place.at);
  if constexpr (unit && full) {
    const V first = picked(a.re, a.im, Low{}), second = picked(a.re, a.im, High{});
    __builtin_memcpy(p + 2 * j, &first, sizeof first);
    __builtin_memcpy(p + 2 * j + W, &second, sizeof second);
  } else
    for (int i = 0; i < n; ++i) {
      p[2 * (j + i) * place.stride] = a.re[i];
      p[2 * (j + i) * place.stride + 1] = a.im[i];
    }
}
template <bool unit, bool full> INGOT_INLINE void put(Place place, int64_t j, int n, M a) {
  for (int i = 0; i < n; ++i) place.at[(j + i) * place.stride] = char(a[i] != 0);
}

// ---- All rows, by all threads. The threads are those of torch, where it has brought them along.

extern "C" {
__attribute__((weak)) void GOMP_parallel(void (*)(void*), void*, unsigned, unsigned);
__attribute__((weak)) int omp_get_thread_num(void);
__attribute__((weak)) int omp_get_num_threads(void);
}

constexpr int most_axes = 8;

// What a kernel runs on: sizes of the axes, then the strides of each operand along them.
struct Layout {
  int64_t axes, threads, unit, chunk;
  const int64_t* sizes;
  const int64_t* strides;
};

template <class Kernel> struct Job {
  char* const* operands;
  const double* numbers;
  const Layout* layout;

  // Pieces of rows from `begin` to `end`.
  void pieces(int64_t begin, int64_t end) const {
    const Layout& on = *layout;
    const int64_t inner = on.sizes[on.axes - 1], parts = (inner + on.chunk - 1) / on.chunk;
    Place places[Kernel::operands];
    for (int64_t piece = begin; piece < end; ++piece) {
      int64_t row = piece / parts;
      const int64_t first = piece % parts * on.chunk;
      const int64_t last = first + on.chunk < inner ? first + on.chunk : inner;
      int64_t index[most_axes];
      for (int64_t d = on.axes - 2; d >= 0; --d) index[d] = row % on.sizes[d], row /= on.sizes[d];
      for (int k = 0; k < Kernel::operands; ++k) {
        const int64_t* strides = on.strides + k * on.axes;
        int64_t offset = 0;
        for (int64_t d = 0; d < on.axes - 1; ++d) offset += index[d] * strides[d];
        places[k] = {operands[k] + offset * Kernel::bytes[k], strides[on.axes - 1]};
      }
      if (on.unit)
        Kernel::template row<true>(places, numbers, first, last);
      else
        Kernel::template row<false>(places, numbers, first, last);
    }
  }
  int64_t count() const {
    int64_t rows = 1;
    for (int64_t d = 0; d < layout->axes - 1; ++d) rows *= layout->sizes[d];
    return rows * ((layout->sizes[layout->axes - 1] + layout->chunk - 1) / layout->chunk);
  }
};

template <class Kernel> void share(void* job) {
  const auto& whole = *static_cast<Job<Kernel>*>(job);
  const int64_t all = whole.count(), me = omp_get_thread_num(), of = omp_get_num_threads();
  whole.pieces(all * me / of, all * (me + 1) / of);
}
template <class Kernel>
INGOT_INLINE void run_all(char* const* operands, const double* numbers, const int64_t* layout) {
  const Layout on = {layout[0], layout[1], layout[2], layout[3], layout + 4, layout + 4 + layout[0]};
  Job<Kernel> job = {operands, numbers, &on};
  if (on.threads > 1 && GOMP_parallel && omp_get_thread_num && omp_get_num_threads)
    GOMP_parallel(&share<Kernel>, &job, unsigned(on.threads), 0);
  else
    job.pieces(0, job.count());
}

}  // namespace
}  // namespace ingot
