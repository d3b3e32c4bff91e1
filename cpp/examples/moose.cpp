// A package called as MOOSE calls materials: stateful properties of elements, gathered into batches of a
// subdomain, computed at once, and read back by computeQpProperties. Nothing of MOOSE is needed: its
// classes are played by small ones of the same shape. `moose aoti/j2 [elements]`.
#include <ingot/ingot.h>

#include <cmath>
#include <cstdio>

// What MOOSE keeps of a material: a value at every quadrature point of every element, now and before.
template <class T> struct MaterialProperty {
  std::vector<std::vector<T>> values, old;
  MaterialProperty(size_t elements, size_t points) : values(elements, std::vector<T>(points)), old(values) {}
  void swap_in_time() { old = values; }  // what MOOSE does when a step is accepted
};

using Six = std::array<double, 6>;  // Mandel order: 11 22 33, then sqrt(2) times 23 13 12
using Tangent = std::array<double, 36>;

// The batch of a subdomain: an object that runs before the elements are visited (a UserObject there),
// gathers what all quadrature points need, and makes one call of the package.
class PackageUserObject {
 public:
  PackageUserObject(const std::string& place, size_t elements, size_t points)
      : model_(ingot::Model::load(place)),
        points_(points),
        count_(int64_t(elements * points)),
        strain_(size_t(count_) * 6),
        plastic_(strain_.size()),
        equivalent_(size_t(count_)),
        rate_(size_t(count_)),
        stress_(strain_.size()),
        plastic_now_(strain_.size()),
        equivalent_now_(equivalent_.size()),
        rate_now_(rate_.size()),
        tangent_(size_t(count_) * 36) {}

  void gather(size_t element, size_t qp, const Six& strain, const Six& plastic, double equivalent, double rate) {
    const size_t at = element * points_ + qp;
    std::copy(strain.begin(), strain.end(), &strain_[6 * at]);
    std::copy(plastic.begin(), plastic.end(), &plastic_[6 * at]);
    equivalent_[at] = equivalent, rate_[at] = rate;
  }
  // All points of the subdomain; false where one failed, and MOOSE is to cut its step.
  bool execute(double time, double old_time) {
    const ingot::Shape six = {count_, 6}, one = {count_};
    ingot::Arrays outputs = {{"stress", {stress_.data(), six}},
                             {"plastic_strain", {plastic_now_.data(), six}},
                             {"equivalent_plastic_strain", {equivalent_now_.data(), one}},
                             {"flow_rate", {rate_now_.data(), one}}};
    ingot::Blocks blocks;
    blocks.put("stress", "strain", ingot::Array(tangent_.data(), {count_, 6, 6}));
    std::vector<ingot::Status> status;
    model_.jacobian({{"strain", {strain_.data(), six}},
                     {"plastic_strain~1", {plastic_.data(), six}},
                     {"equivalent_plastic_strain~1", {equivalent_.data(), one}},
                     {"flow_rate~1", {rate_.data(), one}},
                     {"t", time},
                     {"t~1", old_time}},
                    outputs, blocks, {&status});
    for (const ingot::Status& each : status)
      if (each.failed()) return false;
    return true;
  }
  // What computeQpProperties of the material reads.
  void read(size_t element, size_t qp, Six& stress, Tangent& tangent, Six& plastic, double& equivalent,
            double& rate) const {
    const size_t at = element * points_ + qp;
    std::copy_n(&stress_[6 * at], 6, stress.begin());
    std::copy_n(&tangent_[36 * at], 36, tangent.begin());
    std::copy_n(&plastic_now_[6 * at], 6, plastic.begin());
    equivalent = equivalent_now_[at], rate = rate_now_[at];
  }

 private:
  ingot::Model model_;
  size_t points_;
  int64_t count_;
  std::vector<double> strain_, plastic_, equivalent_, rate_, stress_, plastic_now_, equivalent_now_, rate_now_,
      tangent_;
};

// The material: declares stateful properties, and copies what the batch computed.
class PackageMaterial {
 public:
  PackageMaterial(PackageUserObject& batch, size_t elements, size_t points)
      : batch_(batch),
        stress(elements, points),
        plastic(elements, points),
        tangent(elements, points),
        equivalent(elements, points),
        rate(elements, points) {}

  void gatherQp(size_t element, size_t qp, const Six& strain) const {
    batch_.gather(element, qp, strain, plastic.old[element][qp], equivalent.old[element][qp], rate.old[element][qp]);
  }
  void computeQpProperties(size_t element, size_t qp) {
    batch_.read(element, qp, stress.values[element][qp], tangent.values[element][qp], plastic.values[element][qp],
                equivalent.values[element][qp], rate.values[element][qp]);
  }
  void swap_in_time() { stress.swap_in_time(), plastic.swap_in_time(), equivalent.swap_in_time(), rate.swap_in_time(); }

 private:
  PackageUserObject& batch_;

 public:
  MaterialProperty<Six> stress, plastic;
  MaterialProperty<Tangent> tangent;
  MaterialProperty<double> equivalent, rate;
};

int main(int count, char** words) {
  const size_t elements = count > 2 ? size_t(std::atoll(words[2])) : 100, points = 8;
  if (elements < 1) return std::fprintf(stderr, "usage: moose PACKAGE [ELEMENTS], one element at least\n"), 1;
  try {
    PackageUserObject batch(count > 1 ? words[1] : "aoti/j2", elements, points);
    PackageMaterial material(batch, elements, points);
    // every element is stretched by its own amount, and its lateral strain found by Newton's method on the
    // consistent tangent until the lateral stress vanishes
    double time = 0, step = 0.1, worst = 0;
    int cuts = 0, iterations = 0;
    std::vector<Six> strain(elements, Six{});
    while (time < 1 - 1e-12) {
      const double next = std::min(time + step, 1.0);
      std::vector<Six> trial = strain;
      bool converged = true;
      for (int i = 0;; ++i, ++iterations) {
        for (size_t e = 0; e < elements; ++e) {
          trial[e][0] = 0.01 * next * double(e + 1) / double(elements);
          for (size_t qp = 0; qp < points; ++qp) material.gatherQp(e, qp, trial[e]);
        }
        converged = batch.execute(next, time) && i < 20;
        if (!converged) break;
        worst = 0;
        for (size_t e = 0; e < elements; ++e)
          for (size_t qp = 0; qp < points; ++qp) {
            material.computeQpProperties(e, qp);
            if (qp) continue;
            const Six& s = material.stress.values[e][0];
            const Tangent& c = material.tangent.values[e][0];
            worst = std::max({worst, std::abs(s[1]), std::abs(s[2])});
            const double determinant = c[7] * c[14] - c[8] * c[13];
            trial[e][1] -= (c[14] * s[1] - c[8] * s[2]) / determinant;
            trial[e][2] -= (c[7] * s[2] - c[13] * s[1]) / determinant;
          }
        if (worst < 1e-8) break;
      }
      if (!converged) {  // as MOOSE does after a MooseException: the old state stands, the step is halved
        step /= 2, ++cuts;
        if (step < 1e-6) return 3;
        continue;
      }
      material.swap_in_time();
      strain = trial, time = next;
    }
    std::printf("axial stress of the last element: %.6f\n", material.stress.values[elements - 1][0][0]);
    std::printf("lateral stress at most %.1e; %d Newton iterations, %d cuts\n", worst, iterations, cuts);
  } catch (const ingot::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
