// What the values of points can be beside numbers V and truth values M: complex numbers, as they lie
// in memory. Stands after what says what V and M are: lanes.h, or lane_cuda.h.

namespace ingot {
namespace {

struct C {
  V re, im;
};
template <class X> constexpr int bytes_of = sizeof(real);
template <> constexpr int bytes_of<C> = 2 * sizeof(real);
template <> constexpr int bytes_of<M> = 1;

}  // namespace
}  // namespace ingot
