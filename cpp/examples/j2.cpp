// J2 plasticity at many points, their state updated in place, and the time of a step: `j2 aoti/j2 [points]`.
#include <ingot/ingot.h>

#include <chrono>
#include <cstdio>

int main(int count, char** words) {
  const std::string place = count > 1 ? words[1] : "aoti/j2";
  const int64_t points = count > 2 ? std::atoll(words[2]) : 1000000;
  if (points < 1) return std::fprintf(stderr, "usage: j2 PACKAGE [POINTS], one point at least\n"), 1;
  try {
    const ingot::Model j2 = ingot::Model::load(place);
    // (points, 6) with components outermost: the numbers that a kernel reads together lie side by side
    const size_t n = size_t(points);
    std::vector<double> strain(6 * n), stress(6 * n), plastic(6 * n), equivalent(n), rate(n);
    for (int64_t p = 0; p < points; ++p) strain[size_t(p)] = 0.004 * double(p % 1000) / 1000;
    const ingot::Shape six = {points, 6}, outermost = {1, points};
    const ingot::Arrays inputs = {
        {"strain", {strain.data(), six, outermost}},
        {"plastic_strain~1", {plastic.data(), six, outermost}},
        {"equivalent_plastic_strain~1", {equivalent.data(), {points}}},
        {"flow_rate~1", {rate.data(), {points}}},
        {"t", 1.0},
        {"t~1", 0.0},
    };
    ingot::Arrays outputs = {
        {"stress", {stress.data(), six, outermost}},
        {"plastic_strain", {plastic.data(), six, outermost}},  // in the place of the old one
        {"equivalent_plastic_strain", {equivalent.data(), {points}}},
        {"flow_rate", {rate.data(), {points}}},
    };
    double best = 1e9;
    for (int i = 0; i < 6; ++i) {
      std::fill(plastic.begin(), plastic.end(), 0), std::fill(equivalent.begin(), equivalent.end(), 0),
          std::fill(rate.begin(), rate.end(), 0);
      const auto begin = std::chrono::steady_clock::now();
      j2.forward(inputs, outputs);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::printf("stress of the last point: %.6f\n", stress[size_t(points - 1)]);
    std::printf("%.1f ns a point\n", 1e9 * best / double(points));
  } catch (const ingot::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
