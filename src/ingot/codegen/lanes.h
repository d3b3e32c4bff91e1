// A block of W points as one value `V`, for the kernels that Ingot prints: its arithmetic is that
// of GCC's (or Clang's) vector types, and the functions here are what those have no sign for.
//
// A lane never sees its neighbours, and every W runs the same operations in the same order, so the
// bits of a point depend neither on W nor on its block. Compile with -ffp-contract=off (fma is
// written out), -fno-math-errno, no -ffast-math, and -Wno-psabi where W is wider than a register;
// link libm. Everything has internal linkage, and nothing of the standard library is called that
// would be emitted with a name of its own: libraries opened in one process share such names, and
// the first that was opened would run for all.
#pragma once
#include <cstdint>

#if defined(__AVX512F__)
#define INGOT_REGISTER 64
#elif defined(__AVX__)
#define INGOT_REGISTER 32
#else
#define INGOT_REGISTER 16
#endif
#ifndef INGOT_REAL
#define INGOT_REAL double
#endif
#ifndef W
#define W int(INGOT_REGISTER / sizeof(INGOT_REAL))
#endif
#define INGOT_INLINE inline __attribute__((always_inline))
#define INGOT_LAMBDA __attribute__((always_inline))
#define INGOT_CALL __attribute__((noinline, unused))  // a long body: one copy keeps kernels small
#define INGOT_COLD INGOT_CALL __attribute__((cold))  // rarely run: optimised for size, which compiles faster
#define INGOT_HOT INGOT_CALL  // called at one place, with arrays that are registers on a GPU
#define INGOT_RARE INGOT_COLD  // rarely run, and reads values that must stay in registers on a GPU
#define INGOT_EXPORT extern "C" __attribute__((visibility("default")))

namespace ingot {
namespace {

// ---- Types. Functions are evaluated in D, a block of doubles: V itself, or the part of a block of
// floats that fills a register of doubles.

template <class T, int n> struct Block {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};
template <class T, int n> using block = typename Block<T, n>::type;
// What <type_traits> and <utility> have, whose text takes a tenth of a small kernel's compilation.
template <class T> struct Bare { using type = T; };
template <class T> struct Bare<T&> { using type = T; };
template <class T> struct Bare<const T&> { using type = T; };
template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
template <int... i> struct Places {};
template <int n, int... i> struct Count : Count<n - 1, n - 1, i...> {};
template <int... i> struct Count<0, i...> { using type = Places<i...>; };

template <class X> X& some();
template <class X> using element = typename Bare<decltype(some<X>()[0])>::type;
template <class X> using bits = decltype(X{} < X{});
template <class X> constexpr int width = sizeof(X) / sizeof(element<X>);
template <class X> constexpr bool is_double = same<element<X>, double>;

using real = INGOT_REAL;
using V = block<real, W>;
using M = bits<V>;  // a mask: all bits of a lane are set where it is true
constexpr int wide = is_double<V> || W * 8 <= INGOT_REGISTER ? W : INGOT_REGISTER / 8;
using D = block<double, wide>;
using I = bits<D>;
using U = block<uint64_t, wide>;  // whose sums may overflow

template <class X, class F, int... i> INGOT_INLINE X make(F f, Places<i...>) { return X{f(i)...}; }
// The block whose lane i is f(i).
template <class X, class F> INGOT_INLINE X make(F f) {
  return make<X>(f, typename Count<width<X>>::type{});
}
template <class X> struct Halves { block<element<X>, (width<X> + 1) / 2> low, high; };
template <class To, class From> INGOT_INLINE To recast(From a) {
  static_assert(sizeof(To) == sizeof(From));
  To b;
  __builtin_memcpy(&b, &a, sizeof b);
  return b;
}
template <class X> INGOT_INLINE Halves<X> split(X a) { return recast<Halves<X>>(a); }
template <class X> INGOT_INLINE X join(Halves<X> halves) { return recast<X>(halves); }
// By subtraction, for 0 + -0 is +0.
INGOT_INLINE V splat(real a) { return a - V{}; }
INGOT_INLINE D number(double a) { return a - D{}; }

// ---- Correctly rounded fma and sqrt: one instruction where the machine has one.

#define INGOT_SQRT(T, n, f) INGOT_INLINE block<T, n> sqrt(block<T, n> a) { return f; }
#define INGOT_FMA(T, n, f) \
  INGOT_INLINE block<T, n> fma(block<T, n> a, block<T, n> b, block<T, n> c) { return f; }
#if defined(__AVX512F__) && !defined(__clang__)
INGOT_SQRT(double, 8, __builtin_ia32_sqrtpd512_mask(a, a, -1, 4))
INGOT_SQRT(float, 16, __builtin_ia32_sqrtps512_mask(a, a, -1, 4))
INGOT_FMA(double, 8, __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4))
INGOT_FMA(float, 16, __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4))
#endif
#if defined(__FMA__) && !defined(__clang__)
INGOT_SQRT(double, 4, __builtin_ia32_sqrtpd256(a))
INGOT_SQRT(float, 8, __builtin_ia32_sqrtps256(a))
INGOT_SQRT(double, 2, __builtin_ia32_sqrtpd(a))
INGOT_SQRT(float, 4, __builtin_ia32_sqrtps(a))
INGOT_FMA(double, 4, __builtin_ia32_vfmaddpd256(a, b, c))
INGOT_FMA(float, 8, __builtin_ia32_vfmaddps256(a, b, c))
INGOT_FMA(double, 2, __builtin_ia32_vfmaddpd(a, b, c))
INGOT_FMA(float, 4, __builtin_ia32_vfmaddps(a, b, c))
#endif
template <class X> INGOT_INLINE X sqrt(X a) {
  if constexpr (sizeof(X) > INGOT_REGISTER)
    return join<X>({sqrt(split(a).low), sqrt(split(a).high)});
  else if constexpr (is_double<X>)
    return make<X>([&](int i) { return __builtin_sqrt(a[i]); });
  else
    return make<X>([&](int i) { return __builtin_sqrtf(a[i]); });
}
template <class X> INGOT_INLINE X fma(X a, X b, X c) {
  if constexpr (sizeof(X) > INGOT_REGISTER) {
    const auto x = split(a), y = split(b), z = split(c);
    return join<X>({fma(x.low, y.low, z.low), fma(x.high, y.high, z.high)});
  } else if constexpr (is_double<X>)
    return make<X>([&](int i) { return __builtin_fma(a[i], b[i], c[i]); });
  else
    return make<X>([&](int i) { return __builtin_fmaf(a[i], b[i], c[i]); });
}
INGOT_INLINE D fma(D a, double b, D c) { return fma(a, number(b), c); }
INGOT_INLINE D fma(D a, D b, double c) { return fma(a, b, number(c)); }
INGOT_INLINE D fma(D a, double b, double c) { return fma(a, number(b), number(c)); }

template <class X> INGOT_INLINE X inverse(X a) { return 1 / a; }

// ---- Masks.

template <class X> INGOT_INLINE X select(bits<X> mask, X yes, X no) { return mask ? yes : no; }
INGOT_INLINE D select(I mask, double yes, D no) { return mask ? number(yes) : no; }
INGOT_INLINE D select(I mask, double yes, double no) { return mask ? number(yes) : number(no); }
// Written out, since a comparison on a GPU is a bool, of which ~ is never false.
template <class Mask> INGOT_INLINE Mask no(Mask mask) { return ~mask; }
template <class Mask> INGOT_INLINE bool any(Mask mask) {
#if defined(__AVX512F__) && !defined(__clang__)
  using Words = block<int, 16>;
  if constexpr (sizeof(Mask) == 64)
    return __builtin_ia32_ptestmd512((Words)mask, (Words)mask, -1) != 0;
  else
#endif
  if constexpr (width<Mask> == 1)
    return mask[0] != 0;
  else
    return any(split(mask).low | split(mask).high);
}
template <class Mask> INGOT_INLINE bool all(Mask mask) { return !any(~mask); }
INGOT_INLINE int count(M mask) {
  int n = 0;
  for (int i = 0; i < W; ++i) n -= int(mask[i]);
  return n;
}
// The first n lanes.
INGOT_INLINE M lanes(int n) { return make<M>([](int i) { return i; }) < n; }
INGOT_INLINE real lane_of(V a, int lane) { return a[lane]; }
INGOT_INLINE bool lane_of(M mask, int lane) { return mask[lane] != 0; }
INGOT_INLINE void set_lane(V& a, int lane, real x) { a[lane] = x; }
INGOT_INLINE void set_lane(M& mask, int lane, bool is) { mask[lane] = -int(is); }
// Small whole numbers, one a lane.
using N = M;
INGOT_INLINE N whole(int a) { return N{} + a; }
INGOT_INLINE N choose(M mask, N yes, N no) { return mask ? yes : no; }

// ---- Elementary operations. NaN stays NaN: also in sign, and in min and max (like torch.minimum).

template <class X> INGOT_INLINE bits<X> sign_bit(X a) { return (bits<X>)a & (bits<X>)-X{}; }
template <class X> INGOT_INLINE X abs(X a) { return (X)((bits<X>)a & ~(bits<X>)-X{}); }
template <class X> INGOT_INLINE X copysign(X a, X s) { return (X)((bits<X>)abs(a) | sign_bit(s)); }
template <class X> INGOT_INLINE X min(X a, X b) { return select((a < b) | (a != a), a, b); }
template <class X> INGOT_INLINE X max(X a, X b) { return select((a > b) | (a != a), a, b); }
template <class X> INGOT_INLINE X sign(X a) {
  return a > 0 ? X{} + 1 : a < 0 ? X{} - 1 : X{};  // zero for NaN, as torch's
}
template <class X> INGOT_INLINE X heaviside(X a) { return (sign(a) + 1) / 2; }
template <class X> INGOT_INLINE bits<X> finite(X a) { return abs(a) < element<X>(__builtin_inf()); }
// Adding and subtracting 2^52 rounds to an integer; numbers from there on are integers.
template <class X> INGOT_INLINE X floor(X a) {
  constexpr element<X> whole = is_double<X> ? 0x1p52 : 0x1p23;
  const X near = copysign((abs(a) + whole) - whole, a);
  return select(abs(a) < whole, near - select(near > a, X{} + 1, X{}), a);
}
template <class X> INGOT_INLINE X ceil(X a) { return -floor(-a); }
template <class X> INGOT_INLINE X trunc(X a) { return copysign(floor(abs(a)), a); }
// Halves to the even number.
template <class X> INGOT_INLINE X round(X a) {
  constexpr element<X> whole = is_double<X> ? 0x1p52 : 0x1p23;
  return select(abs(a) < whole, copysign((abs(a) + whole) - whole, a), a);
}
// By the ratio, so that no square overflows.
template <class X> INGOT_INLINE X hypot(X a, X b) {
  const X x = abs(a), y = abs(b), large = max(x, y), small = min(x, y), one = X{} + 1;
  const X ratio = small / select(large == 0, one, large), found = large * sqrt(one + ratio * ratio);
  const X endless = X{} + element<X>(__builtin_inf());
  return select(finite(x) & finite(y), found, select((x == endless) | (y == endless), endless, x + y));
}

// ---- Memory. Lane i is p[i * stride] for i < n. Lanes past n are loaded with the last point, so
// that they do no harm, and are not stored.

INGOT_INLINE V load_all(const real* p, int64_t stride) {
  return make<V>([&](int i) { return p[i * stride]; });  // an address is one addition
}
// One copy, since a kernel has many loads.
INGOT_CALL V load_apart(const real* p, int64_t stride, int n) {
  if (stride == 0 || n == 1) return splat(*p);
  if (n == W) return load_all(p, stride);
  return make<V>([&](int i) { return p[(i < n ? i : n - 1) * stride]; });
}
INGOT_INLINE V load(const real* p, int64_t stride, int n) {
  if (stride != 1 || n != W) return load_apart(p, stride, n);
  V a;
  __builtin_memcpy(&a, p, sizeof a);
  return a;
}
// Ask for the memory that is read, or written, at the next step.
template <bool is_written = false> INGOT_INLINE void ahead(const void* p) { __builtin_prefetch(p, is_written); }
INGOT_CALL void store_apart(real* p, int64_t stride, int n, V a) {
  for (int i = 0; i < n; ++i) p[i * stride] = a[i];
}
INGOT_INLINE void store(real* p, int64_t stride, int n, V a) {
  if (stride != 1 || n != W) return store_apart(p, stride, n, a);
  __builtin_memcpy(p, &a, sizeof a);
}
// The first n lanes to where they lie side by side, as numbers of another type.
template <class T, class X> INGOT_INLINE void write(T* p, int n, X values) {
  const auto narrow = __builtin_convertvector(values, block<T, W>);
  if (n == 1)
    *p = narrow[0];
  else if (n == W)
    __builtin_memcpy(p, &narrow, sizeof narrow);
  else
    __builtin_memcpy(p, &narrow, n * sizeof(T));
}
// Memory of one call, of at most so many entries (0: any number); std::bad_alloc where there is none
// (steps.h).
template <class T, int64_t most> struct Array {
  T* data;
  explicit Array(int64_t n = most) : data(new T[n]) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { delete[] data; }
  T& operator[](int64_t i) const { return data[i]; }
};
// Call a function that is rarely called with an array; a GPU hands over a copy (lane_cuda.h).
template <int n, class X, class F> INGOT_INLINE void held(X* a, F f) { f(a); }
template <int n, class F> INGOT_INLINE void parked(V*, F f) { f(); }
using Lent = const V;
// Whether a solve goes on, of so many unknowns and by so many lines an iteration.
template <int n, int lines> INGOT_INLINE bool goes_on(bool on) { return on; }
// How many right-hand sides a pivoted system is solved for at once; 0: all.
constexpr int sides_at_once = 0;

// ---- Functions of D. All lanes take the usual path; a block with an unusual lane also takes a
// careful one, whose result only unusual lanes keep. Polynomials are minimax (Remez in 50 digits,
// then rounded to double); each says its degree, and its error relative to the result.

constexpr double infinity = __builtin_inf(), nan = __builtin_nan(""), smallest_normal = 0x1p-1022;
constexpr double rounder = 0x1.8p52;             // the last bits of a + rounder are round(a)
constexpr double ln2 = 0x1.62e42fefa39efp-1;
constexpr double ln2_high = 0x1.62e42fefa38p-1;  // 42 bits: its products with exponents are exact
constexpr double ln2_low = 0x1.ef35793c7673p-45;

template <int n> INGOT_INLINE D terms(const D* powers, const double* c) {
  if constexpr (n > 1) {
    constexpr int k = n > 8 ? 3 : n > 4 ? 2 : n > 2 ? 1 : 0, first = 1 << k;
    return fma(terms<n - first>(powers, c + first), powers[k], terms<first>(powers, c));
  } else
    return number(c[0]);
}
// c[0] + c[1] z + c[2] z^2 + ... by Estrin's scheme, which waits less than Horner's.
template <int n> INGOT_INLINE D polynomial(D z, const double (&c)[n]) {
  const D z2 = z * z, z4 = z2 * z2, powers[] = {z, z2, z4, z4 * z4};
  return terms<n>(powers, c);
}
// Lane by lane through libm. The barrier hides constants from the compiler, which would fold them
// with another rounding than libm's.
template <class F> INGOT_INLINE D each(F f, D a) {
  double lane[wide];
  __builtin_memcpy(lane, &a, sizeof a);
  asm("" : "+m"(lane));
  for (double& x : lane) x = f(x);
  __builtin_memcpy(&a, lane, sizeof a);
  return a;
}

// x = n ln2 + r + low, |r| <= ln2 / 2, and n in the last bits of t.
INGOT_INLINE D reduced(D x, D& t, D& low) {
  t = fma(x, 1.4426950408889634, rounder);
  const D n = t - rounder, exact = fma(n, -ln2_high, x), r = fma(n, -ln2_low, exact);
  low = fma(n, -ln2_low, exact - r);
  return r;
}
// e^r - 1 = r + r^2 (1/2 + ...): degree 11, error 2^-55. This is the part after r.
INGOT_INLINE D exp_series(D r) {
  return r * r * polynomial(r, {0.5, 0x1.555555555553ep-3, 0x1.5555555553b16p-5,
                                0x1.1111111118d03p-7, 0x1.6c16c179fb910p-10, 0x1.a01a0171ada09p-13,
                                0x1.a019b3a8a1289p-16, 0x1.71de977e63dedp-19, 0x1.2897587a20544p-22,
                                0x1.ae48e1968774ep-26});
}
INGOT_INLINE D exp_small(D r, D low) { return 1 + (r + (exp_series(r) + low)); }
// e^(x + tail) = p 2^n.
INGOT_INLINE D exp_parts(D x, D tail, D& t) {
  D low;
  const D part = reduced(x, t, low), r = part + tail;
  return exp_small(r, ((part - r) + tail) + low);
}
// p 2^n where that is a normal number.
INGOT_INLINE D scaled(D p, D t) { return (D)((U)p + ((U)t << 52)); }
INGOT_INLINE D power_of_two(I n) { return scaled(number(1), (D)n); }

// e^(x + tail) 2^shift for any x: two factors, so that the result overflows to infinity, or loses
// bits below 1e-308, in one rounding.
INGOT_CALL D exp_far(D x, D tail, int shift) {
  const D c = select(x > 800, 800, select(x < -800, -800, x));
  D t;
  const D p = exp_parts(c, select(c == x, tail, D{}), t);
  const I n = (I)t - (I)number(rounder) + shift, first = n >> 1;
  return p * power_of_two(first) * power_of_two(n - first);
}
// Lanes where e^x is a normal number or, as often in flow rules, vanishes.
INGOT_INLINE I exp_usual(D x) { return (abs(x) < 708) | (x < -746); }

INGOT_CALL D exp(D x) {
  D t, low;
  const D r = reduced(x, t, low), e = select(x < -746, 0, scaled(exp_small(r, low), t));
  const I usual = exp_usual(x);
  return all(usual) ? e : select(usual, e, exp_far(x, D{}, 0));
}
// 2^n (e^r - 1) + (2^n - 1), which is -1 below -50.
INGOT_INLINE D expm1_near(D x) {
  D t, low;
  const D r = reduced(select(x < -50, -50, x), t, low), power = scaled(number(1), t);
  return fma(power, exp_series(r) + low, fma(power, r, power - 1));
}
INGOT_CALL D expm1(D x) {
  const I usual = x < 708;
  const D e = copysign(expm1_near(x), x);
  return all(usual) ? e : select(usual, e, exp_far(x, D{}, 0));
}
// e^x / 2 for x >= 0, which overflows later than e^x.
INGOT_INLINE D half_exp(D x) {
  D t, low;
  const D r = reduced(x, t, low), e = scaled(0.5 * exp_small(r, low), t);
  const I usual = x < 708;
  return all(usual) ? e : select(usual, e, exp_far(x, D{}, -1));
}
INGOT_CALL D cosh(D x) {
  const D h = half_exp(abs(x));
  return h + 0.25 / h;
}
// Below 1, x + x^3 (1/6 + ...): degree 15, error 2^-56.
INGOT_CALL D sinh(D x) {
  const D a = abs(x), z = a * a, h = half_exp(a);
  const D p = polynomial(z, {0x1.5555555555556p-3, 0x1.11111111110a1p-7, 0x1.a01a01a0291fep-13,
                             0x1.71de3a45f70c6p-19, 0x1.ae64676698a5dp-26, 0x1.611a3a1bbca13p-33,
                             0x1.b4cf79d65784ep-41});
  return copysign(select(a < 1, fma(a * z, p, a), h - 0.25 / h), x);
}
// (e^2x - 1) / (e^2x + 1), which is 1 from 22 on.
INGOT_CALL D tanh(D x) {
  const D a = abs(x), e = expm1_near(2 * select(a > 22, 22, a));
  return copysign(e / (e + 2), x);
}

// x = 2^k m with m in [sqrt(1/2), sqrt(2)): the exponent field is read as 2^52 + field, less bias.
constexpr double exponent_bias = 0x1p52 + 1023;
INGOT_INLINE D mantissa(D x, D bias, D& k) {
  using U = block<uint64_t, wide>;  // sums of bits may pass what a signed number holds, for NaN
  const I root = (I)number(0x1.6a09e667f3bcdp-1), shifted = (I)((U)(I)x + (U)((I)number(1) - root));
  k = (D)((I)((U)shifted >> 52) | (I)number(0x1p52)) - bias;
  return (D)((shifted & 0xfffffffffffff) + root);
}
// With s = (m - 1) / (m + 1) and z = s^2, log m = s (2 + z (2/3 + z Q(z))): Q has degree 6 in z and
// an error of 2^-66. This is z Q.
INGOT_INLINE D log_series(D z) {
  return z * polynomial(z, {0x1.9999999999b30p-2, 0x1.2492492457db1p-2, 0x1.c71c722d5e4cep-3,
                            0x1.745ce9e64c46fp-3, 0x1.3b1eeb7d50e27p-3, 0x1.0f7ff6ef9e17ep-3,
                            0x1.0e422d3742fb9p-3});
}
// log x = k ln2 + f - (f^2/2 - s (f^2/2 + z (2/3 + z Q))) with f = m - 1, which is exact.
INGOT_INLINE D log_near(D x, D bias) {
  D k;
  const D f = mantissa(x, bias, k) - 1, s = f / (f + 2), z = s * s, h = 0.5 * f * f;
  const D rest = fma(s, fma(z, 2. / 3 + log_series(z), h), k * ln2_low);
  return fma(k, ln2_high, f - (h - rest));
}
// log x = high + low, to 2^-67 or so: the same series, its first two terms carried in two doubles.
INGOT_INLINE D log_double(D x, D bias, D& low) {
  D k;
  const D m = mantissa(x, bias, k), f = m - 1, u = m + 1, u_low = m - (u - 1), v = 1 / u;
  const D s = f * v, s_low = fma(-s, u_low, fma(-s, u, f)) * v;
  const D z = s * s, z_low = fma(2 * s, s_low, fma(s, s, -z)), q = log_series(z);
  const D a = 2. / 3 + q, a_low = (2. / 3 - a) + q + 0x1.5555555555555p-55;
  const D b = z * a, b_low = fma(z, a_low, fma(z_low, a, fma(z, a, -b)));
  const D c = 2 + b, c_low = (2 - c) + b + b_low;
  const D d = s * c, d_low = fma(s, c_low, fma(s_low, c, fma(s, c, -d)));
  const D whole = k * ln2, whole_low = fma(k, 0x1.abc9e3b39803fp-56, fma(k, ln2, -whole));
  const D high = whole + d;
  low = (whole - high) + d + (whole_low + d_low);
  return high;
}
// A logarithm, from its formula for normal numbers.
template <class F> INGOT_INLINE D logarithm(D x, F near) {
  const D y = near(x, number(exponent_bias));
  const I usual = (x >= smallest_normal) & (x < infinity);
  if (all(usual)) return y;
  const D far = near(x * 0x1p54, number(exponent_bias + 54));
  const D edge = select(x == 0, -infinity, select(x < 0, nan, x));
  return select(usual, y, select((x > 0) & (x < infinity), far, edge));
}
INGOT_CALL D log(D x) { return logarithm(x, [](D a, D bias) { return log_near(a, bias); }); }
INGOT_CALL D log10(D x) {
  constexpr double scale = 0x1.bcb7b1526e50ep-2, scale_low = 0x1.95355baaafad3p-57;  // 1 / ln 10
  return logarithm(x, [](D a, D bias) {
    D low;
    const D high = log_double(a, bias, low);
    return fma(high, scale, fma(high, scale_low, low * scale));
  });
}
// log u + c / u, where u + c is 1 + x exactly.
INGOT_CALL D log1p(D x) {
  const D u = 1 + x, v = u - 1, c = (1 - (u - v)) + (x - v), y = log(u);
  return select(abs(x) < 0x1p-54, x, select((x > -1) & (x < infinity), y + c / u, y));
}

// y log x = power + tail.
INGOT_INLINE D log_power(D x, D y, D bias, D& tail) {
  D low;
  const D high = log_double(x, bias, low), power = y * high;
  tail = fma(y, low, fma(y, high, -power));
  return power;
}
// Every case of C99's pow.
INGOT_CALL D pow_far(D x, D y) {
  const D a = abs(x), y_half = 0.5 * y;
  const I tiny = a < smallest_normal, endless = abs(y) == infinity;
  D tail;
  const D power = log_power(select(tiny, a * 0x1p54, a), y,
                            select(tiny, exponent_bias + 54, exponent_bias), tail);
  D p = exp_far(power, tail, 0);
  p = select((a == 0) | (a == infinity) | endless, select((a > 1) == (y > 0), infinity, 0), p);
  const I whole = floor(y) == y, odd = whole & (abs(y) < 0x1p53) & (floor(y_half) != y_half);
  p = select(odd, copysign(p, x), p);
  p = select((x < 0) & (x > -infinity) & ~whole, nan, p);
  p = select((x != x) | (y != y), x + y, p);
  return select((x == 1) | (y == 0) | ((x == -1) & endless), 1, p);
}
// Base 0 is usual (an elastic point has no overstress), and so is a power that vanishes.
INGOT_CALL D pow(D x, D y) {
  const I zero = (I)x == 0;
  D tail, t;
  const D power = log_power(select(zero, 1, x), y, number(exponent_bias), tail);
  const D p = exp_parts(power, tail, t), e = select(zero | (power < -746), 0, scaled(p, t));
  const I usual = exp_usual(power) & (x < infinity) & ((x >= smallest_normal) | (zero & (y > 0)));
  return all(usual) ? e : select(usual, e, pow_far(x, y));
}

// Sine and cosine of r = a - n pi/2, 0 <= a < 2^30, with n in the last bits of the result. pi/2 has
// three parts: a - n times the first is exact, and r is carried in two doubles.
// sin r = r + r^3 S(z), degree 13, error 2^-57; cos r = 1 - z/2 + z^2 C(z), degree 14, error 2^-59.
INGOT_INLINE I sine_cosine(D a, D& sine, D& cosine) {
  const D t = fma(a, 0x1.45f306dc9c883p-1, rounder), n = rounder - t;
  const D exact = fma(n, 0x1.921fb54442d18p+0, a), second = n * 0x1.1a62633145c07p-54;
  const D third = fma(n, -0x1.f1976b7ed8fbcp-110, fma(n, 0x1.1a62633145c07p-54, -second));
  const D r = exact + second, r_low = ((exact - r) + second) + third;
  const D z = r * r, h = 0.5 * z, w = 1 - h;
  const D s = polynomial(z, {-0x1.5555555555549p-3, 0x1.111111110f880p-7, -0x1.a01a019c12618p-13,
                             0x1.71de35786da82p-19, -0x1.ae5e66d072a36p-26, 0x1.5d932e2acac38p-33});
  const D c = polynomial(z, {0x1.555555555554cp-5, -0x1.6c16c16c15185p-10, 0x1.a01a019cb277cp-16,
                             -0x1.27e4f80a7cf56p-22, 0x1.1ee9ec4c4ecc9p-29,
                             -0x1.8faed19bd8064p-37});
  sine = r + fma(r * z, s, r_low * w);
  cosine = w + (((1 - w) - h) + fma(z * z, c, -r * r_low));
  return (I)t;
}
// sin(a + quarters pi/2).
INGOT_INLINE D sine(D a, int quarters) {
  D s, c;
  const I n = sine_cosine(a, s, c) + quarters;
  return (D)((I)select((n & 1) != 0, c, s) ^ sign_bit((D)(n << 62)));
}
// Larger angles, infinities and NaNs go to libm.
template <class F> INGOT_INLINE D angle(D x, D y, F libm) {
  const I usual = abs(x) < 0x1p30;
  return all(usual) ? y : select(usual, y, each(libm, x));
}
INGOT_CALL D sin(D x) {
  const D y = (D)((I)sine(abs(x), 0) ^ sign_bit(x));
  return angle(x, y, [](double a) { return __builtin_sin(a); });
}
INGOT_CALL D cos(D x) {
  return angle(x, sine(abs(x), 1), [](double a) { return __builtin_cos(a); });
}
INGOT_CALL D tan(D x) {
  D s, c;
  const I odd = (sine_cosine(abs(x), s, c) & 1) != 0;
  const D y = select(odd, -c, s) / select(odd, s, c);
  return angle(x, (D)((I)y ^ sign_bit(x)), [](double a) { return __builtin_tan(a); });
}
template <class F> INGOT_INLINE D each(F f, D a, D b) {
  return make<D>([&](int i) { return f(a[i], b[i]); });
}
INGOT_CALL D log2(D x) { return each([](double a) { return __builtin_log2(a); }, x); }
INGOT_CALL D asinh(D x) { return each([](double a) { return __builtin_asinh(a); }, x); }
INGOT_CALL D acosh(D x) { return each([](double a) { return __builtin_acosh(a); }, x); }
INGOT_CALL D atanh(D x) { return each([](double a) { return __builtin_atanh(a); }, x); }
INGOT_CALL D atan2(D y, D x) {
  return each([](double a, double b) { return __builtin_atan2(a, b); }, y, x);
}
// What is left of a after whole multiples of b, with the sign of b.
INGOT_CALL D remainder(D a, D b) {
  const D rest = each([](double x, double y) { return __builtin_fmod(x, y); }, a, b);
  return select((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest);
}
INGOT_CALL D asin(D x) { return each([](double a) { return __builtin_asin(a); }, x); }
INGOT_CALL D acos(D x) { return each([](double a) { return __builtin_acos(a); }, x); }
INGOT_CALL D atan(D x) { return each([](double a) { return __builtin_atan(a); }, x); }

// ---- Blocks of floats go through D, a register at a time.

template <class F, class X, class... Y> INGOT_INLINE X through_double(F f, X a, Y... b) {
  if constexpr (width<X> > wide)
    return join<X>({through_double(f, split(a).low, split(b).low...),
                    through_double(f, split(a).high, split(b).high...)});
  else
    return __builtin_convertvector(
        f(__builtin_convertvector(a, D), __builtin_convertvector(b, D)...), X);
}
using Floats = block<float, W>;
#define INGOT_FLOAT(f) \
  INGOT_INLINE Floats f(Floats a) { return through_double([](D x) { return f(x); }, a); }
INGOT_FLOAT(exp) INGOT_FLOAT(expm1) INGOT_FLOAT(log) INGOT_FLOAT(log10) INGOT_FLOAT(log1p)
INGOT_FLOAT(sin) INGOT_FLOAT(cos) INGOT_FLOAT(tan) INGOT_FLOAT(asin) INGOT_FLOAT(acos)
INGOT_FLOAT(atan) INGOT_FLOAT(sinh) INGOT_FLOAT(cosh) INGOT_FLOAT(tanh) INGOT_FLOAT(log2)
INGOT_FLOAT(asinh) INGOT_FLOAT(acosh) INGOT_FLOAT(atanh)
#define INGOT_FLOATS(f) INGOT_INLINE Floats f(Floats a, Floats b) { \
    return through_double([](D x, D y) { return f(x, y); }, a, b); }
INGOT_FLOATS(pow) INGOT_FLOATS(atan2) INGOT_FLOATS(remainder)

}  // namespace
}  // namespace ingot
