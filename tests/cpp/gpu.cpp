// Runs a package on a GPU and on the CPU, and tells by how much they differ: `gpu PLACE`.
#include <ingot/ingot.h>
#include <cstdio>
int main(int, char** words) {
  const ingot::Model cpu = ingot::Model::load(words[1], "cpu"), gpu = ingot::Model::load(words[1], "cuda");
  const int64_t n = 5000;
  std::vector<double> strain(size_t(6 * n), 0.0);
  for (int64_t p = 0; p < n; ++p) strain[size_t(6 * p)] = 0.004 * double(p % 1000) / 1000;
  ingot::Arrays inputs = {{"strain", {strain, {n, 6}}},
                          {"plastic_strain~1", {std::vector<double>(size_t(6 * n)), {n, 6}}},
                          {"equivalent_plastic_strain~1", 0.0},
                          {"flow_rate~1", 0.0},
                          {"t", 1.0},
                          {"t~1", 0.0}},
                there;
  for (const auto& [name, value] : inputs) there[name] = gpu.to_device(value);
  std::vector<ingot::Status> status;
  const ingot::Arrays right = cpu.forward(inputs), found = gpu.forward(there, {&status});
  double worst = 0, largest = 0;
  const auto compare = [&](const ingot::Array& a, const ingot::Array& b) {
    const auto x = a.to_vector(), y = gpu.to_host(b).to_vector();
    for (size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, std::abs(x[i] - y[i])), largest = std::max(largest, std::abs(x[i]));
  };
  for (const auto& [name, value] : right) compare(value, found.at(name));
  std::printf("%d %.3e ", int(status.at(0).failed()), worst / largest);
  worst = largest = 0;
  compare(cpu.jacobian(inputs).at("stress", "strain"), gpu.jacobian(there).at("stress", "strain"));
  std::printf("%.3e ", worst / largest);
  ingot::Dispatcher both(words[1], {"cpu", "cuda"}, ingot::Dispatcher::round_robin, 700);
  worst = largest = 0;
  inputs["equivalent_plastic_strain~1"] = ingot::Array(std::vector<double>(size_t(n)));
  for (const auto& [name, value] : both.forward(inputs)) compare(right.at(name), value);
  std::printf("%.3e\n", worst / largest);
  try {
    gpu.forward(inputs);
  } catch (const ingot::Error& error) {
    std::printf("%s\n", error.code().c_str());
  }
  return 0;
}
