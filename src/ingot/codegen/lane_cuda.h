// A single point as one value `V`, for the kernels that Ingot prints, by one thread of a GPU: what
// lanes.h is for blocks of points, under the name of lanes.h. NVRTC brings no headers, and its
// functions are known from the start.
#pragma once
#include <cstdint>

#define W 1
#define INGOT_INLINE __device__ __forceinline__
#define INGOT_LAMBDA
#define INGOT_CALL __device__ __noinline__  // a long body: one copy keeps kernels small
#define INGOT_COLD __device__ __noinline__  // rarely run: what it reads is handed over in copies (`held`)
#define INGOT_HOT __device__ __forceinline__  // called at one place, with arrays that are registers
#define INGOT_RARE __device__ __forceinline__

namespace ingot {
namespace {

using real = INGOT_REAL;
using V = real;
using D = double;
using Floats = float;
template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;

// A truth value with the signs of the masks of lanes.h but for ~, which is `no`.
struct M {
  bool is;
  INGOT_INLINE M() : is(false) {}
  INGOT_INLINE M(bool is) : is(is) {}
  INGOT_INLINE explicit operator V() const { return is; }
};
INGOT_INLINE M no(M a) { return !a.is; }
INGOT_INLINE M operator&(M a, M b) { return a.is && b.is; }
INGOT_INLINE M operator|(M a, M b) { return a.is || b.is; }
INGOT_INLINE M& operator|=(M& a, M b) { return a = a | b; }
INGOT_INLINE float select(M mask, float yes, float no) { return mask.is ? yes : no; }
INGOT_INLINE double select(M mask, double yes, double no) { return mask.is ? yes : no; }
INGOT_INLINE bool any(M mask) { return mask.is; }
INGOT_INLINE bool all(M mask) { return mask.is; }
INGOT_INLINE int count(M mask) { return mask.is; }
INGOT_INLINE M lanes(int n) { return n > 0; }

constexpr double infinity = __builtin_bit_cast(double, 0x7ff0000000000000ll);
constexpr double nan = __builtin_bit_cast(double, 0x7ff8000000000000ll);

// ---- The only lane.

INGOT_INLINE V splat(real a) { return a; }
template <class X, class F> INGOT_INLINE X make(F f) { return f(0); }
INGOT_INLINE real lane_of(V a, int) { return a; }
INGOT_INLINE bool lane_of(M mask, int) { return mask.is; }
INGOT_INLINE void set_lane(V& a, int, real x) { a = x; }
INGOT_INLINE void set_lane(M& mask, int, bool is) { mask = is; }
using N = int;
INGOT_INLINE N whole(int a) { return a; }
INGOT_INLINE N choose(M mask, N yes, N no) { return mask.is ? yes : no; }

// ---- Memory.

INGOT_INLINE V load(const real* p, int64_t, int) { return *p; }
INGOT_INLINE V load_all(const real* p, int64_t) { return *p; }
INGOT_INLINE void store(real* p, int64_t, int, V a) { *p = a; }
template <bool is_written = false> INGOT_INLINE void ahead(const void*) {}  // other threads run meanwhile
template <class T, class X> INGOT_INLINE void write(T* p, int, X value) { *p = T(value); }
// Memory of one call, which a thread has in local memory: its size is known when it is compiled.
template <class T, int64_t most> struct Array {
  mutable T data[most];
  INGOT_INLINE explicit Array(int64_t = most) {}
  INGOT_INLINE T& operator[](int64_t i) const { return data[i]; }
};
// Call a function with a copy of an array. An array whose address is known to a function that is
// called cannot lie in registers; those that are too many for registers are handed over as they are.
template <int n, class X, class F> INGOT_INLINE void held(X* a, F f) {
  if constexpr (n > 64) {
    f(a);
  } else {
    V copy[n];
#pragma unroll
    for (int i = 0; i < n; ++i) copy[i] = a[i];
    f(static_cast<X*>(copy));
    if constexpr (same<X, V>) {
#pragma unroll
      for (int i = 0; i < n; ++i) a[i] = copy[i];
    }
  }
}
// Call a function that calls others while an array lies in memory. What lives on across a call lies in
// memory all the time otherwise, also where the call is rare.
template <int n, class F> INGOT_INLINE void parked(V* a, F f) {
  held<n>(a, [&](V* copy) {
    asm volatile("" ::"l"(copy) : "memory");
    f();
    asm volatile("" ::: "memory");
  });
}
// Whether a solve goes on, of so many unknowns and by so many lines an iteration. Threads of a block
// begin long iterations together, those that are done included: others read the same code again from a
// cache, of which 64 kB are 4096 instructions. A line is some 1.6 of them, and an unknown 200.
template <int n, int lines> INGOT_INLINE bool goes_on(bool on) {
  if constexpr (lines > 0 && 8 * lines + 1000 * n > 5 * 4096) return __syncthreads_or(on);
  return on;
}

// Threads that are started together, and how many blocks of them a multiprocessor holds: as many as leave
// every thread the registers it may have (255). On an H200 fewer registers for more threads take 1.3 to 3
// times as long (benchmarks.gpu_variants); unless it is told, the compiler has chosen 32 for a crystal.
constexpr int threads_of_block = 128;
constexpr int most_blocks = 2;

// Slots of one number for every thread of a block, in the memory that threads share: what is too much
// for registers is spilled there on purpose (spill.py). What the compiler spills is more than the first
// cache of a multiprocessor holds, and a crystal waited for the second two thirds of its time.
// Some 8 kB of a block's are for parameters that are hoisted, 1 kB is CUDA's.
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900  // threads that run one by one on a CPU
#endif
constexpr int shared_kilobytes = __CUDA_ARCH__ < 800                            ? 64
                                 : __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 870 ? 164
                                 : __CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200 ? 100
                                                                                : 228;
constexpr int slot_bytes = threads_of_block * sizeof(real);
constexpr int count_slots(int blocks) { return (shared_kilobytes / blocks - 9) * 1024 / slot_bytes; }
// One block at once where its values would not fit in half of the memory: a crystal is 7 % faster then.
template <int slots> constexpr int blocks_at_once = slots > count_slots(most_blocks) ? 1 : most_blocks;
template <int slots> constexpr int shared_slots =
    slots < count_slots(blocks_at_once<slots>) ? slots : count_slots(blocks_at_once<slots>);

#ifndef INGOT_SLOTS
#define INGOT_SLOTS(name) extern __shared__ real name[]
#endif
INGOT_SLOTS(slots_of_block);

// Volatile, or else the compiler would keep the values in registers after all.
template <int slots> struct Spilled {
  volatile real own[slots - shared_slots<slots> + 1];  // what even shared memory does not hold
  INGOT_INLINE volatile real& operator[](int i) {
    if (i < shared_slots<slots>) return slots_of_block[i * threads_of_block + threadIdx.x];
    return own[i - shared_slots<slots>];
  }
};

using Lent = V;  // what is given to Newton's loop, which parks it
constexpr int sides_at_once = 1;

// ---- Elementary operations. NaN stays NaN in min and max (like torch.minimum), and is 0 in sign.

template <class X> INGOT_INLINE X abs(X a) { return ::fabs(a); }
INGOT_INLINE V copysign(V a, V s) { return ::copysign(a, s); }
INGOT_INLINE V min(V a, V b) { return a < b || a != a ? a : b; }
INGOT_INLINE V max(V a, V b) { return a > b || a != a ? a : b; }
INGOT_INLINE V sign(V a) { return a > 0 ? 1 : a < 0 ? -1 : 0; }
INGOT_INLINE V heaviside(V a) { return (sign(a) + 1) / 2; }
template <class X> INGOT_INLINE M finite(X a) { return abs(a) < X(infinity); }
INGOT_INLINE double fma(double a, double b, double c) { return ::fma(a, b, c); }
INGOT_INLINE float fma(float a, float b, float c) { return ::fmaf(a, b, c); }

// 1 / a to the last bit or the one before. CUDA's own calls a routine for unusual numbers, and what calls
// ends a stretch of lines that its compiler orders: GTN takes 7 % longer then. Here those are moved
// into the range of the usual ones, and what has no finite inverse keeps that of the hardware.
INGOT_INLINE float inverse(float a) { return 1 / a; }
INGOT_INLINE double inverse(double a) {
#ifdef __CUDACC__
  const unsigned size = unsigned(__double2hiint(a)) & 0x7fffffffu;
  const double scale = size < 0x06400000u ? 0x1p100 : size > 0x79c00000u ? 0x1p-100 : 1.0, b = a * scale;
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(b));
  const bool is_normal = (unsigned(__double2hiint(y)) & 0x7fffffffu) - 0x00100000u < 0x7fe00000u;
  const double error = ::fma(-b, y, 1.0), near = ::fma(y, ::fma(error, error, error), y);
  return is_normal ? ::fma(near, ::fma(-b, near, 1.0), near) * scale : y;
#else
  return 1 / a;  // threads that run one by one on a CPU
#endif
}

#define INGOT_FUNCTION(f) INGOT_INLINE V f(V a) { return ::f(a); }
INGOT_FUNCTION(sqrt) INGOT_FUNCTION(floor) INGOT_FUNCTION(exp) INGOT_FUNCTION(expm1)
INGOT_FUNCTION(log) INGOT_FUNCTION(log10) INGOT_FUNCTION(log1p) INGOT_FUNCTION(sin)
INGOT_FUNCTION(cos) INGOT_FUNCTION(tan) INGOT_FUNCTION(asin) INGOT_FUNCTION(acos)
INGOT_FUNCTION(atan) INGOT_FUNCTION(tanh)
INGOT_FUNCTION(ceil) INGOT_FUNCTION(trunc) INGOT_FUNCTION(log2) INGOT_FUNCTION(asinh)
INGOT_FUNCTION(acosh) INGOT_FUNCTION(atanh)
// As in lanes.h, so that what reads both takes one exponential: CUDA's own are two, with branches.
INGOT_INLINE double half_exp(double a) {  // e^a / 2 for a >= 0, which overflows later than e^a
  const bool far = a > 700;
  return ::exp(far ? a - 1 : a) * (far ? 0x1.5bf0a8b145769p+0 : 0.5);
}
INGOT_INLINE double cosh(double a) {
  const double h = half_exp(::fabs(a));
  return h + 0.25 * inverse(h);
}
// Below 1, a + a^3 (1/6 + ...): degree 15, error 2^-56.
INGOT_INLINE double sinh(double a) {
  const double x = ::fabs(a), z = x * x, h = half_exp(x);
  double p = 0x1.b4cf79d65784ep-41;
  p = ::fma(p, z, 0x1.611a3a1bbca13p-33), p = ::fma(p, z, 0x1.ae64676698a5dp-26);
  p = ::fma(p, z, 0x1.71de3a45f70c6p-19), p = ::fma(p, z, 0x1.a01a01a0291fep-13);
  p = ::fma(p, z, 0x1.11111111110a1p-7), p = ::fma(p, z, 0x1.5555555555556p-3);
  return ::copysign(x < 1 ? ::fma(x * z, p, x) : h - 0.25 * inverse(h), a);
}
INGOT_INLINE float cosh(float a) { return ::coshf(a); }
INGOT_INLINE float sinh(float a) { return ::sinhf(a); }
INGOT_INLINE V round(V a) { return ::rint(a); }
INGOT_INLINE V atan2(V y, V x) { return ::atan2(y, x); }
INGOT_INLINE V hypot(V a, V b) { return ::hypot(a, b); }
INGOT_INLINE V remainder(V a, V b) {
  const V rest = ::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
INGOT_INLINE V pow(V a, V b) { return ::pow(a, b); }
template <class F> INGOT_INLINE float through_double(F f, float a) { return float(f(double(a))); }

}  // namespace
}  // namespace ingot
