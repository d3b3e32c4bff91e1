// Wrong calls drawn at random: names, counts, sizes, precisions, strides, null pointers, overlaps. Each
// ends well or in ingot::Error. `campaign PACKAGE CALLS SEED`, then tells how many were refused.
#include <ingot/ingot.h>

#include <cstdio>
#include <random>
#include <stdexcept>

using ingot::Array;
using ingot::Arrays;
using ingot::DType;
using ingot::Model;
using ingot::Shape;

struct Dice {
  std::mt19937_64 engine;
  int64_t below(int64_t n) { return int64_t(engine() % uint64_t(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class T> const T& of(const std::vector<T>& row) { return row[size_t(below(int64_t(row.size())))]; }
};

static std::vector<double> memory(1 << 16, 0.01);

static std::string spoil(std::string name, Dice& dice) {
  switch (dice.below(6)) {
    case 0: return name + "x";
    case 1: return "";
    case 2: return std::string(300, 'a');
    case 3: return name.substr(0, name.size() / 2);
    case 4: return std::string("\0\xff'\n", 4);
    default: return "nobody";
  }
}

// An array of the right shape, or one that is wrong in some way; it never reads past the memory.
static Array draw(const ingot::Variable& v, const Shape& batch, DType dtype, Dice& dice, bool faulty) {
  Shape shape = batch;
  for (int64_t n : v.shape()) shape.push_back(n);
  void* data = memory.data() + 8 * dice.below(64);
  Shape strides;
  if (faulty) switch (dice.below(9)) {
      case 0: data = nullptr; break;
      case 1: dtype = DType(dice.below(8)); break;
      case 2: shape.push_back(dice.below(3)); break;
      case 3:
        if (!shape.empty()) shape.pop_back();
        break;
      case 4:
        if (!shape.empty())
          shape[size_t(dice.below(int64_t(shape.size())))] =
              dice.of<int64_t>({-1, 0, 2, 7, INT64_MIN, int64_t(1) << 61, INT64_MAX});
        break;
      case 5: strides.assign(size_t(dice.below(4)), dice.one_in(4) ? INT64_MAX : 1); break;
      case 6: data = reinterpret_cast<char*>(data) + 1 + dice.below(7); break;
      case 7: return Array(data, dtype, shape, {}, true, dice.of<std::string>({"cuda", "cuda:7", "", "tpu"}));
      default: return Array();
    }
  if (strides.empty() && dice.one_in(3)) {  // lying otherwise, within the memory
    strides.assign(shape.size(), 0);
    int64_t at = 1;
    for (size_t i = 0; i < shape.size(); ++i)
      strides[i] = at, at *= std::max<int64_t>(std::min<int64_t>(shape[i], 100), 1);
  }
  return Array(data, dtype, shape, strides, !faulty || dice.one_in(2), "cpu");
}

static Array own(Array x, Dice& dice) {  // memory that may be written to, mostly apart from what is read
  if (x.size() > 20000 || !x.address() || dice.one_in(8)) return x;
  return Array::empty(x.dtype(), x.shape());
}

int main(int count, char** words) {
  if (count != 4) return 2;
  Model model = Model::load(words[1]);
  const int64_t calls = std::atoll(words[2]);
  Dice dice{std::mt19937_64(uint64_t(std::atoll(words[3])))};
  int64_t refused = 0, fine = 0;
  const auto meta = model.metadata();
  for (int64_t i = 0; i < calls; ++i) {
    const Shape batch = dice.of<Shape>({{}, {1}, {3}, {5}, {2, 3}, {0}, {70}});
    const int64_t faults = dice.below(3);
    const auto fill = [&](const std::vector<ingot::Variable>& row, int64_t wrong) {
      Arrays made;
      for (const auto& v : row) {
        const bool faulty = wrong > 0 && dice.one_in(3);
        wrong -= faulty;
        if (faulty && dice.one_in(4)) continue;
        made[faulty && dice.one_in(3) ? spoil(v.name, dice) : v.name] =
            draw(v, dice.one_in(8) ? dice.of<Shape>({{}, {1}, {3}, {9}}) : batch, model.dtype(), dice, faulty);
      }
      if (wrong > 0 && dice.one_in(3)) made[spoil("x", dice)] = Array(1.0);
      return made;
    };
    try {
      const Arrays inputs = fill(meta.inputs, faults);
      std::vector<ingot::Status> status;
      const ingot::With with{dice.one_in(2) ? &status : nullptr};
      switch (dice.below(9)) {
        case 0: model.forward(inputs, with); break;
        case 1: {
          ingot::Blocks blocks = model.jacobian(inputs, with);
          const std::string name = meta.outputs.front().name, other = dice.one_in(2) ? spoil(name, dice) : name;
          if (const ingot::Array& block = blocks.at(other, meta.inputs.front().name); !block.address() && block.size())
            throw std::logic_error("a block that is not there");
          break;
        }
        case 2: model.jvp(inputs, fill(meta.inputs, dice.below(2)), with); break;
        case 3: model.vjp(inputs, fill(meta.outputs, dice.below(2)), with); break;
        case 4:
          model.param_vjp(inputs, fill(meta.outputs, dice.below(2)), {dice.one_in(2) ? spoil("nu", dice) : "nu"}, with);
          break;
        case 5: {
          Arrays outputs = fill(meta.outputs, dice.below(3));
          for (auto& [name, value] : outputs) value = own(value, dice);
          model.forward(inputs, outputs, with);
          break;
        }
        case 6: {
          Model other = model;
          const auto names = model.parameters();
          const std::string name = names.empty() || dice.one_in(3) ? spoil("nu", dice) : dice.of(names);
          ingot::Variable v;
          v.name = name;
          other.set_parameter(name,
                              draw(v, dice.of<Shape>({{}, {3}, {0}, {2, 2}}), model.dtype(), dice, dice.one_in(2)));
          other.forward(inputs, with);
          break;
        }
        case 7: {
          ingot::Rules rules;
          rules.abs_tol = dice.of<double>({1e-10, 0, -1, NAN, INFINITY});
          rules.max_its = int32_t(dice.of<int64_t>({25, 0, -3, 1}));
          rules.stop = int32_t(dice.below(4)) - 1;
          rules.linesearch_cutback = dice.of<double>({2, 1, 0, NAN});
          model.with_rules(meta.solvers.empty() || dice.one_in(2) ? spoil("update", dice) : meta.solvers[0].name, rules)
              .forward(inputs, with);
          break;
        }
        default: {
          const int64_t steps = dice.of<int64_t>({0, 1, 3, -1, 4});
          model.transient({steps, fill(meta.inputs, faults), fill(meta.outputs, dice.below(2))}, with);
        }
      }
      ++fine;
    } catch (const ingot::Error& error) {
      if (error.problems().empty() || error.code().empty() || !*error.what()) return 3;
      ++refused;
    }
  }
  for (const char* place : {"", "/", "nowhere", "/dev/null", "nowhere.i"}) try {
      Model::load(place);
      return 4;
    } catch (const ingot::Error&) {}
  std::printf("%lld refused, %lld fine\n", static_cast<long long>(refused), static_cast<long long>(fine));
  return 0;
}
