// Arrays of numbers: a pointer, a shape and strides, and sometimes the memory itself; and arrays by name.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "error.h"
#include "metadata.h"

namespace ingot {

enum class DType { float64, float32, int64, int32, int16, int8, uint8, boolean };

inline const char* name_of(DType dtype) {
  static const char* const names[] = {"float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool"};
  return names[int(dtype)];
}
inline int64_t size_of(DType dtype) {
  static const int64_t sizes[] = {8, 4, 8, 4, 2, 1, 1, 1};
  return sizes[int(dtype)];
}

template <class T> constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  static_assert(std::is_arithmetic_v<U>, "an array holds numbers");
  if constexpr (std::is_same_v<U, double>) return DType::float64;
  else if constexpr (std::is_same_v<U, float>) return DType::float32;
  else if constexpr (std::is_same_v<U, bool>) return DType::boolean;
  else if constexpr (std::is_same_v<U, uint8_t>) return DType::uint8;
  else if constexpr (sizeof(U) == 8) return DType::int64;
  else if constexpr (sizeof(U) == 4) return DType::int32;
  else if constexpr (sizeof(U) == 2) return DType::int16;
  else return DType::int8;
}

// Strides of numbers that lie side by side: row-major, or with the last axes outermost.
inline Shape row_major(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)  // sizes that no memory holds wrap, and are refused later
    strides[i - 1] = int64_t(uint64_t(strides[i]) * uint64_t(std::max<int64_t>(shape[i], 1)));
  return strides;
}

inline Shape outermost_last(const Shape& shape, size_t count) {
  Shape strides = row_major(shape);
  if (!count || detail::product(shape) == 0) return strides;
  int64_t at = 1;
  for (size_t i = shape.size() - count; i-- > 0;) strides[i] = at, at *= shape[i];
  for (size_t i = shape.size(); i-- > shape.size() - count;) strides[i] = at, at *= shape[i];
  return strides;
}

// Numbers `(*batch, *axes, *base)`, wherever they lie: a view of a caller's memory, or memory of its own,
// which copies of the array share. Strides count numbers. Nothing is checked until a call reads it.
class Array {
 public:
  Array() = default;

  // Views: of numbers that are read, or that may be written to.
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Array(const T* data, Shape shape, Shape strides = {}, std::string device = "cpu")
      : Array(const_cast<T*>(data), dtype_of<T>(), std::move(shape), std::move(strides), false, std::move(device)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Array(T* data, Shape shape, Shape strides = {}, std::string device = "cpu")
      : Array(data, dtype_of<T>(), std::move(shape), std::move(strides), true, std::move(device)) {}
  Array(void* data, DType dtype, Shape shape, Shape strides, bool writable, std::string device)
      : data_(data),
        dtype_(dtype),
        shape_(std::move(shape)),
        strides_(std::move(strides)),
        writable_(writable),
        device_(std::move(device)) {
    if (strides_.empty()) strides_ = row_major(shape_);
  }

  // Numbers of its own: one, a row, or of any shape.
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> Array(T number)
      : Array(std::vector<T>{number}, Shape{}) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>>>
  Array(std::vector<T> numbers) : Array(std::move(numbers), Shape{}, true) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>>>
  Array(std::vector<T> numbers, Shape shape) : Array(std::move(numbers), std::move(shape), false) {}
  Array(bool) = delete;

  // Room for numbers, row-major unless components shall lie outermost: `(*batch, *rest)` of this rank.
  static Array empty(DType dtype, Shape shape, size_t outermost = 0) {
    const int64_t count = detail::product(shape);
    if (count > INT64_MAX / 64) throw detail::refuse("too large", {{"points", std::to_string(count)}});
    void* const found = ::operator new(size_t(std::max<int64_t>(count, 1) * size_of(dtype)), std::nothrow);
    if (!found) throw detail::refuse("no memory", {});
    std::shared_ptr<void> memory(found, [](void* p) { ::operator delete(p); });
    Array made(memory.get(), dtype, std::move(shape), {}, true, "cpu");
    made.owner_ = std::move(memory);
    made.strides_ = outermost_last(made.shape_, outermost);
    return made;
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  const std::string& device() const { return device_; }
  bool is_writable() const { return writable_; }
  int64_t size() const { return detail::product(shape_); }
  const void* address() const { return data_; }
  void* address() { return data_; }
  const std::shared_ptr<void>& owner() const { return owner_; }
  void keep(std::shared_ptr<void> owner) { owner_ = std::move(owner); }

  template <class T> const T* data() const {
    if (dtype_ != dtype_of<T>())
      throw detail::refuse("precision", {{"name", "the array"},
                                         {"dtype", name_of(dtype_of<T>())},
                                         {"who", "it"},
                                         {"held", name_of(dtype_)},
                                         {"other", ""}});
    return static_cast<const T*>(data_);
  }
  template <class T> T* data() { return const_cast<T*>(std::as_const(*this).data<T>()); }

  // One number, by an index for each axis.
  template <class T = double> T at(std::initializer_list<int64_t> index) const {
    int64_t place = 0;
    size_t axis = 0;
    if (index.size() != shape_.size())
      throw detail::refuse(
          "strides", {{"name", "an index"}, {"count", std::to_string(index.size())}, {"shape", detail::tuple(shape_)}});
    for (int64_t i : index) {
      if (i < 0 || i >= shape_[axis])
        throw detail::refuse("shape", {{"name", "an index"},
                                       {"shape", detail::tuple(shape_)},
                                       {"wanted", std::to_string(i)},
                                       {"fix", "give one within it"}});
      place += i * strides_[axis++];
    }
    return data<T>()[place];
  }

  // All numbers, row-major.
  template <class T = double> std::vector<T> to_vector() const {
    std::vector<T> made;
    made.resize(size_t(size()));
    if (made.empty()) return made;
    const T* from = data<T>();
    each([&](int64_t at, int64_t place) { made[size_t(at)] = from[place]; });
    return made;
  }

  // Calls with the place of every number in row-major order and in memory.
  template <class Work> void each(Work work) const {
    const int64_t count = size();
    Shape index(shape_.size(), 0);
    int64_t place = 0;
    for (int64_t at = 0; at < count; ++at) {
      work(at, place);
      for (size_t axis = shape_.size(); axis-- > 0;) {
        place += strides_[axis];
        if (++index[axis] < shape_[axis]) break;
        place -= shape_[axis] * strides_[axis];
        index[axis] = 0;
      }
    }
  }

 private:
  template <class T> Array(std::vector<T> numbers, Shape shape, bool row) {
    const int64_t count = int64_t(numbers.size());
    if (row) shape = {count};
    for (int64_t n : shape)
      if (n < 0) throw detail::refuse("negative size", {{"name", "an array"}, {"shape", detail::tuple(shape)}});
    if (detail::product(shape) != count)
      throw detail::refuse("count", {{"name", "an array"},
                                     {"given", std::to_string(count)},
                                     {"shape", detail::tuple(shape)},
                                     {"wanted", std::to_string(detail::product(shape))}});
    auto held = std::make_shared<std::vector<T>>(std::move(numbers));
    if (held->empty()) held->reserve(1);
    data_ = held->data(), dtype_ = dtype_of<T>(), shape_ = std::move(shape), strides_ = row_major(shape_),
    writable_ = true;
    owner_ = std::shared_ptr<void>(held, held->data());
  }

  void* data_ = nullptr;
  DType dtype_ = DType::float64;
  Shape shape_, strides_;
  bool writable_ = false;
  std::string device_ = "cpu";
  std::shared_ptr<void> owner_;
};

// Arrays by name, in the order in which they were given.
class Arrays {
 public:
  using Pair = std::pair<std::string, Array>;

  Arrays() = default;
  Arrays(std::initializer_list<Pair> pairs) : pairs_(pairs) {}

  Array& operator[](const std::string& name) {
    for (Pair& each : pairs_)
      if (each.first == name) return each.second;
    pairs_.emplace_back(name, Array());
    return pairs_.back().second;
  }
  const Array* find(const std::string& name) const {
    for (const Pair& each : pairs_)
      if (each.first == name) return &each.second;
    return nullptr;
  }
  const Array& at(const std::string& name) const {
    if (const Array* found = find(name)) return *found;
    std::vector<std::string> known;
    for (const Pair& each : pairs_) known.push_back(each.first);
    std::string fix = detail::did_you_mean(name, known);
    throw detail::refuse(
        "unknown direction",
        {{"word", "array"}, {"name", name}, {"fix", fix.empty() ? "one of: " + detail::join(known) : fix}});
  }
  Array& at(const std::string& name) { return const_cast<Array&>(std::as_const(*this).at(name)); }
  size_t size() const { return pairs_.size(); }
  bool empty() const { return pairs_.empty(); }
  auto begin() const { return pairs_.begin(); }
  auto end() const { return pairs_.end(); }
  auto begin() { return pairs_.begin(); }
  auto end() { return pairs_.end(); }

 private:
  std::vector<Pair> pairs_;
};

namespace detail {

// The shape that both broadcast to, if there is one.
inline bool broadcast(const Shape& a, const Shape& b, Shape& made) {
  const size_t rank = std::max(a.size(), b.size());
  made.assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < rank - a.size() ? 1 : a[i - (rank - a.size())],
                  y = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (x != y && x != 1 && y != 1) return false;
    made[i] = x == 1 ? y : x;
  }
  return true;
}

// The batch shape that all broadcast to; two that do not fit are named.
inline Shape join_batches(const std::vector<Shape>& shapes) {
  Shape found;
  std::vector<Shape> seen;
  for (const Shape& shape : shapes) {
    if (std::find(seen.begin(), seen.end(), shape) != seen.end()) continue;
    seen.push_back(shape);
    if (found.empty() || shape.empty()) {
      if (found.empty()) found = shape;
      continue;
    }
    Shape both;
    if (!broadcast(found, shape, both)) throw refuse("batches", {{"first", tuple(found)}, {"second", tuple(shape)}});
    found = std::move(both);
  }
  return found;
}

// The stride of axes taken as one, if they have such; axes of one entry do not count.
inline bool collapse(const int64_t* shape, const int64_t* strides, size_t rank, int64_t& stride) {
  stride = 0;
  int64_t next = 0;
  bool first = true;
  for (size_t i = rank; i-- > 0;) {
    if (shape[i] == 1) continue;
    if (first) stride = strides[i], next = strides[i] * shape[i], first = false;
    else if (strides[i] == next) next *= shape[i];
    else return false;
  }
  return true;
}

// A value as kernels read it: points x components, each with one stride.
struct Flat {
  void* data = nullptr;
  int64_t point = 0, component = 1, width = 1, points = 1;  // points: 1 where one value is for all
  std::shared_ptr<void> owner;
};

template <class T> void gather(const Array& x, T* to) {
  const T* from = static_cast<const T*>(x.address());
  x.each([&](int64_t at, int64_t place) { to[at] = from[place]; });
}

// The same numbers in a batch shape that an array broadcasts to, without a copy.
inline Array expand(const Array& x, const Shape& batch, size_t rest) {
  const size_t own = x.shape().size() - rest;
  Shape shape = batch, strides(batch.size(), 0);
  for (size_t i = 0; i < own; ++i) {
    const size_t at = batch.size() - own + i;
    strides[at] = x.shape()[i] == 1 ? 0 : x.strides()[i];
  }
  shape.insert(shape.end(), x.shape().end() - std::ptrdiff_t(rest), x.shape().end());
  strides.insert(strides.end(), x.strides().end() - std::ptrdiff_t(rest), x.strides().end());
  Array made(const_cast<void*>(x.address()), x.dtype(), std::move(shape), std::move(strides), x.is_writable(),
             x.device());
  if (made.shape().empty()) return x;
  made.keep(x.owner());
  return made;
}

inline Shape batch_of(const Array& x, size_t rest) {
  return Shape(x.shape().begin(), x.shape().end() - std::ptrdiff_t(rest));
}

// Strides of a value `(*batch, *rest)` as two; false where it must be copied first.
inline bool flatten(const Array& x, size_t rest, Flat& made) {
  const size_t own = x.shape().size() - rest;
  made.data = const_cast<void*>(x.address());
  made.width = 1;
  for (size_t i = own; i < x.shape().size(); ++i) made.width *= x.shape()[i];
  made.points = 1;
  for (size_t i = 0; i < own; ++i) made.points *= x.shape()[i];
  made.owner = x.owner();
  return collapse(x.shape().data(), x.strides().data(), own, made.point) &&
         collapse(x.shape().data() + own, x.strides().data() + own, rest, made.component);
}

}  // namespace detail
}  // namespace ingot
