// A single point as one value `V`, for the kernels that Ingot prints, by one thread of a GPU: what
// lanes.h is for blocks of points. Nothing is included: NVRTC brings no headers, and its functions
// are known from the start.
#define INGOT_INLINE __device__ __forceinline__

namespace ingot {
namespace {

using real = INGOT_REAL;
using V = real;

// A truth value whose signs are those of the masks of lanes.h, where ~ is what ! is for bool.
struct M {
  bool is;
  INGOT_INLINE M(bool is) : is(is) {}
};
INGOT_INLINE M operator~(M a) { return !a.is; }
INGOT_INLINE M operator&(M a, M b) { return a.is && b.is; }
INGOT_INLINE M operator|(M a, M b) { return a.is || b.is; }
INGOT_INLINE V select(M mask, V yes, V no) { return mask.is ? yes : no; }

constexpr double infinity = __builtin_bit_cast(double, 0x7ff0000000000000ll);
constexpr double nan = __builtin_bit_cast(double, 0x7ff8000000000000ll);

INGOT_INLINE V splat(real a) { return a; }
INGOT_INLINE V abs(V a) { return ::fabs(a); }
INGOT_INLINE V copysign(V a, V s) { return ::copysign(a, s); }
INGOT_INLINE V pow(V a, V b) { return ::pow(a, b); }
// NaN stays NaN (like torch.minimum).
INGOT_INLINE V min(V a, V b) { return a < b || a != a ? a : b; }
INGOT_INLINE V max(V a, V b) { return a > b || a != a ? a : b; }

#define INGOT_FUNCTION(f) INGOT_INLINE V f(V a) { return ::f(a); }
INGOT_FUNCTION(sqrt) INGOT_FUNCTION(floor) INGOT_FUNCTION(exp) INGOT_FUNCTION(expm1)
INGOT_FUNCTION(log) INGOT_FUNCTION(log10) INGOT_FUNCTION(log1p) INGOT_FUNCTION(sin)
INGOT_FUNCTION(cos) INGOT_FUNCTION(tan) INGOT_FUNCTION(sinh) INGOT_FUNCTION(cosh)
INGOT_FUNCTION(tanh)

}  // namespace
}  // namespace ingot
