// What the values of points can be beside numbers V: complex numbers C, truth values M, and the
// functions of them that printed loops call. Stands after what says what V and M are: lanes.h, or
// lane_cuda.h.

namespace ingot {
namespace {

// ---- Complex numbers as two values.

struct C {
  V re, im;
};
INGOT_INLINE C complex(V a) { return {a, V{}}; }
INGOT_INLINE C complex(C a) { return a; }
INGOT_INLINE C operator-(C a) { return {-a.re, -a.im}; }
INGOT_INLINE C operator+(C a, C b) { return {a.re + b.re, a.im + b.im}; }
INGOT_INLINE C operator+(C a, V b) { return {a.re + b, a.im}; }
INGOT_INLINE C operator+(V a, C b) { return {a + b.re, b.im}; }
INGOT_INLINE C operator-(C a, C b) { return {a.re - b.re, a.im - b.im}; }
INGOT_INLINE C operator-(C a, V b) { return {a.re - b, a.im}; }
INGOT_INLINE C operator-(V a, C b) { return {a - b.re, -b.im}; }
INGOT_INLINE C operator*(C a, V b) { return {a.re * b, a.im * b}; }
INGOT_INLINE C operator*(V a, C b) { return {a * b.re, a * b.im}; }
INGOT_INLINE C operator*(C a, C b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
INGOT_INLINE C operator/(C a, V b) { return {a.re / b, a.im / b}; }
// By the larger part of the divisor, so that no square overflows.
INGOT_INLINE C operator/(C a, C b) {
  const M wide_real = abs(b.re) >= abs(b.im);
  const V large = select(wide_real, b.re, b.im), small = select(wide_real, b.im, b.re);
  const V ratio = small / large, below = large + small * ratio;
  const V p = select(wide_real, a.re, a.im), q = select(wide_real, a.im, a.re);
  const V turn = q - p * ratio;
  return {(p + q * ratio) / below, select(wide_real, turn, -turn) / below};
}
INGOT_INLINE C operator/(V a, C b) { return complex(a) / b; }
INGOT_INLINE M operator==(C a, C b) { return (a.re == b.re) & (a.im == b.im); }
INGOT_INLINE M operator!=(C a, C b) { return (a.re != b.re) | (a.im != b.im); }
INGOT_INLINE C select(M mask, C yes, C no) {
  return {select(mask, yes.re, no.re), select(mask, yes.im, no.im)};
}
INGOT_INLINE C conj(C a) { return {a.re, -a.im}; }
INGOT_INLINE V length(C a) {
  const V x = abs(a.re), y = abs(a.im), large = max(x, y), small = min(x, y);
  const V ratio = small / select(large == 0, splat(1), large);
  return large * sqrt(1 + ratio * ratio);
}
INGOT_INLINE C exp(C a) {
  const V size = exp(a.re);
  return {size * cos(a.im), size * sin(a.im)};
}

// ---- Other kinds of values.

template <int n, class X> INGOT_INLINE X whole_power(X a) {
  if constexpr (n == 1)
    return a;
  else if constexpr (n % 2 == 1)
    return whole_power<n - 1>(a) * a;
  else {
    const X root = whole_power<n / 2>(a);
    return root * root;
  }
}

INGOT_INLINE V as_real(M a) { return select(a, splat(1), V{}); }
INGOT_INLINE V as_real(V a) { return a; }
INGOT_INLINE M as_truth(V a) { return a != 0; }
INGOT_INLINE M as_truth(M a) { return a; }
INGOT_INLINE V ceil(V a) { return -floor(-a); }
INGOT_INLINE V trunc(V a) { return copysign(floor(abs(a)), a); }
INGOT_INLINE V round(V a) {
  constexpr real whole = sizeof(real) == 8 ? 0x1p52 : 0x1p23;
  return select(abs(a) < whole, copysign((abs(a) + whole) - whole, a), a);
}
// The sign of a NaN is 0, as torch has it.
INGOT_INLINE V torch_sign(V a) { return select(a > 0, splat(1), select(a < 0, splat(-1), V{})); }

// ---- An element of each kind in memory: a number, two of them, or a byte.

template <class X> struct Kind;
template <> struct Kind<V> {
  static constexpr int bytes = sizeof(real);
};
template <> struct Kind<C> {
  static constexpr int bytes = 2 * sizeof(real);
};
template <> struct Kind<M> {
  static constexpr int bytes = 1;
};

}  // namespace
}  // namespace ingot
