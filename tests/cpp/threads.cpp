// Threads of our own that share a model: values, parameters set meanwhile, several models, a dispatcher.
// `threads PACKAGE...`; all bits must be those of one thread alone.
#include <ingot/ingot.h>

#include <cstdio>
#include <cstring>

using ingot::Array;
using ingot::Arrays;
using ingot::Model;

static Arrays draw(const Model& model, int64_t points, double by) {
  Arrays made;
  for (const auto& v : model.inputs()) {
    ingot::Shape shape = v.shape();
    shape.insert(shape.begin(), points);
    std::vector<double> numbers;
    for (int64_t i = 0; i < points * v.size; ++i) numbers.push_back(0.2 + 0.001 * by * double((i * 7 + 3) % 101) / 101);
    made[v.name] = Array(numbers, shape);
  }
  return made;
}

static bool same(const Arrays& a, const Arrays& b) {
  for (const auto& [name, x] : a) {
    const auto p = x.to_vector(), q = b.at(name).to_vector();
    if (p.size() != q.size() || std::memcmp(p.data(), q.data(), p.size() * sizeof(double)) != 0) return false;
  }
  return true;
}

int main(int count, char** words) {
  std::atomic<int> wrong{0};
  std::vector<Model> models;
  ingot::Options options;
  options.threads = 4;
  for (int i = 1; i < count; ++i) models.push_back(Model::load(words[i], options));
  for (const Model& model : models) {
    const int64_t points = model.metadata().constants.empty() ? 5000 : int64_t(model.metadata().constants[0].shape[0]);
    const Arrays inputs = draw(model, points, 1);
    ingot::Options alone;
    alone.threads = 1;
    const Arrays right = Model::load(words[1 + (&model - models.data())], alone).forward(inputs);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int k = 0; k < 3; ++k) {
          std::vector<ingot::Status> status;
          if (!same(right, t % 2 ? model.forward(inputs) : model.forward(inputs, {&status}))) ++wrong;
          if (k == 1 && !model.metadata().derivatives.empty()) model.jacobian(inputs);
        }
      });
    threads.emplace_back([&] {  // a copy has parameters of its own; so has each call those of its beginning
      Model other = model;
      for (const std::string& name : other.parameters()) {
        const Array before = other.parameter(name);
        for (int k = 0; k < 20; ++k) other.set_parameter(name, before);
      }
    });
    for (std::thread& each : threads) each.join();
  }
  for (int i = 1; i < count; ++i)
    for (const auto policy : {ingot::Dispatcher::round_robin, ingot::Dispatcher::by_load}) {
      if (!models[size_t(i - 1)].metadata().constants.empty()) continue;
      ingot::Dispatcher shared(words[i], {"cpu", "cpu", "cpu"}, policy, 700, options);
      const Arrays inputs = draw(models[size_t(i - 1)], 5000, 1);
      if (!same(models[size_t(i - 1)].forward(inputs), shared.forward(inputs))) ++wrong;
      int64_t done = 0, idle = 0;
      for (size_t k = 0; k < shared.size(); ++k) done += shared.points_done(k), idle += shared.points_done(k) == 0;
      if (done != 5000 || (policy == ingot::Dispatcher::round_robin && idle)) ++wrong;
      Arrays bad = inputs;
      bad[bad.begin()->first] = Array(1.0F);
      try {
        shared.forward(bad);
        ++wrong;
      } catch (const ingot::Error&) {}
    }
  std::printf("%d wrong\n", wrong.load());
  return wrong != 0;
}
