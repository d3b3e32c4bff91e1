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

// Lane i is element j + i, and elements lie one after the other.
template <class X> INGOT_INLINE X get(Place place, int64_t j) {
  const real* p = reinterpret_cast<const real*>(place.at);
  if constexpr (std::is_same_v<X, V>) {
    V a;
    __builtin_memcpy(&a, p + j, sizeof a);
    return a;
  } else if constexpr (std::is_same_v<X, C>) {
    V a, b;
    __builtin_memcpy(&a, p + 2 * j, sizeof a);
    __builtin_memcpy(&b, p + 2 * j + W, sizeof b);
    return {picked(a, b, Even{}), picked(a, b, Odd{})};
  } else {
    const char* q = place.at;
    return make<M>([&](int i) { return -int(q[j + i] != 0); });
  }
}
template <class X, int shift> INGOT_INLINE X get_shifted(Place place, int64_t j) {
  return get<X>(place, j - shift);
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
INGOT_INLINE void put(Place place, int64_t j, V a) {
  __builtin_memcpy(reinterpret_cast<real*>(place.at) + j, &a, sizeof a);
}
INGOT_INLINE void put(Place place, int64_t j, C a) {
  real* p = reinterpret_cast<real*>(place.at);
  const V first = picked(a.re, a.im, Low{}), second = picked(a.re, a.im, High{});
  __builtin_memcpy(p + 2 * j, &first, sizeof first);
  __builtin_memcpy(p + 2 * j + W, &second, sizeof second);
}
INGOT_INLINE void put(Place place, int64_t j, M a) {
  for (int i = 0; i < W; ++i) place.at[j + i] = char(a[i] != 0);
}

// One element; its size is one of few, so that no copy is a call.
inline void copy(char* to, const char* from, int bytes) {
  switch (bytes) {
    case 1: *to = *from; break;
    case 4: __builtin_memcpy(to, from, 4); break;
    case 8: __builtin_memcpy(to, from, 8); break;
    default: __builtin_memcpy(to, from, 16);
  }
}

// ---- A row. The lines of a kernel stand in the library once, for blocks that are full and whose
// elements lie one after the other; others are brought into that form, and back. What is done
// around the lines is the same code for all kernels.

// Lines for whole blocks from one element to another.
using Stage = void (*)(const Place*, const double*, int64_t, int64_t);

// Operands that are read stand before those that are given; `shifts` has a row for each of them.
struct Kernel {
  int operands, inputs, axes, reach, stage_count;
  int64_t tile;
  bool shifted;
  const int* bytes;
  const bool* varying;
  const int* shifts;
  const Stage* stages;
};

struct Row {
  const Kernel& kernel;
  const Place* at;
  const double* number;
  int64_t size;

  void stages(const Place* places, int64_t begin, int64_t end) const {
    for (int s = 0; s < kernel.stage_count; ++s) kernel.stages[s](places, number, begin, end);
  }
  // n elements from j on, of which those some cells away may lie at the other end of the row. What
  // lies as a block does is read and written where it is.
  void staged(int64_t j, int n) const {
    constexpr int most = 2 * sizeof(V);
    auto* room = static_cast<char*>(__builtin_alloca(kernel.operands * most));
    auto* places = static_cast<Place*>(__builtin_alloca(kernel.operands * sizeof(Place)));
    for (int k = 0; k < kernel.operands; ++k) {
      places[k] = at[k];
      if (!kernel.varying[k]) continue;
      const int64_t first = j - kernel.shifts[(k + 1) * kernel.axes - 1];
      if (at[k].stride == 1 && n == W && first >= 0 && first + W <= size) continue;
      char* here = room + k * most;
      // read at `first`, it is the first
      places[k].at = reinterpret_cast<char*>(uintptr_t(here) - uintptr_t(first * kernel.bytes[k]));
      if (k < kernel.inputs) bring(k, first, n, here);
    }
    stages(places, j, j + W);
    for (int k = kernel.inputs; k < kernel.operands; ++k)
      if (places[k].at != at[k].at)
        for (int i = 0, bytes = kernel.bytes[k]; i < n; ++i)
          copy(at[k].at + (j + i) * at[k].stride * bytes, room + k * most + i * bytes, bytes);
  }
  // A block of an operand from an element on that may lie beyond an end; the last is repeated.
  void bring(int k, int64_t first, int n, char* here) const {
    const int bytes = kernel.bytes[k];
    const int64_t step = at[k].stride * bytes;
    first += first < 0 ? size : first >= size ? -size : 0;
    const char* from = at[k].at + first * step;
    for (int i = 0; i < n; ++i, from += step) {
      if (first + i == size) from -= size * step;
      copy(here + i * bytes, from, bytes);
    }
    for (int i = n; i < W; ++i) copy(here + i * bytes, here + (n - 1) * bytes, bytes);
  }
  void run(int64_t begin, int64_t end, bool unit) const {
    const int64_t reach = kernel.reach;
    for (int64_t j = begin, to; j < end;) {
      to = end - j > kernel.tile ? j + kernel.tile : end;
      const auto one = [&] {
        staged(j, int(to - j < W ? to - j : W));
        j += W;
      };
      while (unit && j < to && j < reach) one();
      const int64_t last = to < size - reach ? to : size - reach;
      if (unit && last - j >= W) {
        const int64_t whole = j + (last - j) / W * W;
        stages(at, j, whole);
        j = whole;
      }
      while (j < to) one();
      j = to;
    }
  }
};

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

struct Job {
  const Kernel& kernel;
  char* const* operands;
  const double* numbers;
  const Layout* layout;

  // Pieces of rows from `begin` to `end`.
  void pieces(int64_t begin, int64_t end) const {
    const Layout& on = *layout;
    const int64_t inner = on.sizes[on.axes - 1], parts = (inner + on.chunk - 1) / on.chunk;
    auto* places = static_cast<Place*>(__builtin_alloca(kernel.operands * sizeof(Place)));
    for (int64_t piece = begin; piece < end; ++piece) {
      int64_t row = piece / parts;
      const int64_t first = piece % parts * on.chunk;
      const int64_t last = first + on.chunk < inner ? first + on.chunk : inner;
      int64_t index[most_axes];
      for (int64_t d = on.axes - 2; d >= 0; --d) index[d] = row % on.sizes[d], row /= on.sizes[d];
      for (int k = 0; k < kernel.operands; ++k) {
        const int64_t* strides = on.strides + k * on.axes;
        int64_t offset = 0;
        for (int64_t d = 0; d < on.axes - 1; ++d) {
          int64_t i = index[d];
          if (kernel.shifted) {
            i -= kernel.shifts[k * kernel.axes + d];
            i += i < 0 ? on.sizes[d] : i >= on.sizes[d] ? -on.sizes[d] : 0;
          }
          offset += i * strides[d];
        }
        places[k] = {operands[k] + offset * kernel.bytes[k], strides[on.axes - 1]};
      }
      Row{kernel, places, numbers, inner}.run(first, last, on.unit);
    }
  }
  int64_t count() const {
    int64_t rows = 1;
    for (int64_t d = 0; d < layout->axes - 1; ++d) rows *= layout->sizes[d];
    return rows * ((layout->sizes[layout->axes - 1] + layout->chunk - 1) / layout->chunk);
  }
};

void share(void* job) {
  const auto& whole = *static_cast<Job*>(job);
  const int64_t all = whole.count(), me = omp_get_thread_num(), of = omp_get_num_threads();
  whole.pieces(all * me / of, all * (me + 1) / of);
}
void run_all(const Kernel& kernel, char* const* operands, const double* numbers,
             const int64_t* layout) {
  const Layout on = {layout[0], layout[1], layout[2], layout[3], layout + 4, layout + 4 + layout[0]};
  Job job = {kernel, operands, numbers, &on};
  if (on.threads > 1 && GOMP_parallel && omp_get_thread_num && omp_get_num_threads)
    GOMP_parallel(&share, &job, unsigned(on.threads), 0);
  else
    job.pieces(0, job.count());
}

}  // namespace
}  // namespace ingot
