// A package as a user material of Abaqus and its kin: `umat` for one point, `vumat` for a block of
// them. It stands behind the C functions and the tables of `namespace umat` (package/umat.py).
#pragma once
#include "c_functions.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

// What hosts end a job with, where they have it.
extern "C" void xit_(void) __attribute__((weak));
extern "C" void xplb_exit_(void) __attribute__((weak));

// What CalculiX calls a user material from: nobody else has it.
extern "C" void umat_abaqus_(void) __attribute__((weak));

namespace ingot {
namespace {
namespace umat {

constexpr double root_half = 0.70710678118654752440, root_two = 1.41421356237309504880;
constexpr int mandel_of_umat[6] = {0, 1, 2, 5, 4, 3};   // 11 22 33 12 13 23
constexpr int mandel_of_vumat[6] = {0, 1, 2, 5, 3, 4};  // 11 22 33 12 23 31
constexpr int planes[6][2] = {{0, 0}, {1, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}};  // of Mandel components
constexpr int thickness = 2;
constexpr int thickness_updates = 50, thickness_failures = 8;
constexpr double epsilon = std::numeric_limits<real>::epsilon();
constexpr double exact_stress = sizeof(real) == 8 ? 1e-13 : 4 * epsilon;  // across, of the largest: a few sums round so
constexpr double solved_stress = 1e-7;  // across, of the largest: what tolerances of solves leave of a stress
constexpr double lost_strain = 4;       // epsilons of the largest: what strains lose as they are read and added up
constexpr double step_error = 1e-3;  // of a step: what rounding of total time may take from it
constexpr double cut = 0.25;  // of a step in which a point failed, as Abaqus itself cuts one

// Only one thread may end a program: others that come to do so wait for that.
struct Ending {
  static inline char taken = 0;
  Ending() {
    while (__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE)) {
    }
  }
  ~Ending() { __atomic_clear(&taken, __ATOMIC_RELEASE); }
};

template <class... T> [[noreturn]] inline void stop(const char* told, T... given) {
  const Ending alone;
  std::fprintf(stderr, "error[wrong-umat]: '%s' ", name);
  std::fprintf(stderr, told, given..., 0);  // the last: a format without arguments is warned of
  std::fprintf(stderr, "\n  fix: see %s-umat.inc\n", name);
  std::fflush(stderr);
  if (xit_) xit_();
  if (xplb_exit_) xplb_exit_();
  std::exit(1);
}

// Refuse a call that lacks an array: C may make one, Fortran cannot.
template <int n> inline void require(const void* const (&given)[n]) {
  for (int i = 0; i < n; ++i)
    if (!given[i]) stop("is given a null pointer, the number %d of the arguments that it reads", i + 1);
}

// All that a host gives for a point, in Mandel components and rows of matrices.
struct Point {
  double strain[6], strain_old[6], stress_old[6], gradient[9], gradient_old[9];
  double time, time_old, temperature, temperature_old, energy_old[3];
  double field[fields + 1], field_old[fields + 1], state[numbers + 1];
};

constexpr int64_t sum(const int64_t* sizes, int count) { return count ? sizes[count - 1] + sum(sizes, count - 1) : 0; }
constexpr int64_t in_total = sum(package::read_size, package::inputs);
constexpr int64_t out_total = sum(package::gives_size, package::outputs);
constexpr int64_t block_total = sum(package::gives_size + package::outputs, package::blocks);

// The arrays of a call for up to n points, components outermost: what kernels read together lies side
// by side. They are ours and right, so that entries are called without the checks of the C functions.
template <int n> struct Call {
  real read[n * in_total + 1], given[n * out_total + 1], slopes[n * block_total + 1];
  real constants[properties + 1];

  template <class T> void take_properties(const T* props) {
    for (int k = 0; k < properties; ++k) constants[k] = real(props[k]);
  }

  // Put a point in the places [begin, end).
  void take(int begin, int end, const Point& x) {
    real* to = read;
    for (int i = 0; i < package::inputs; ++i) {
      const double* values = find(x, from[i]);
      for (int64_t k = 0; k < package::read_size[i]; ++k, to += n)
        for (int p = begin; p < end; ++p) to[p] = real(values[k]);
    }
  }

  static const double* find(const Point& x, From f) {
    switch (f.source) {
      case of_strain: return x.strain;
      case of_strain_old: return x.strain_old;
      case of_stress_old: return x.stress_old;
      case of_gradient: return x.gradient;
      case of_gradient_old: return x.gradient_old;
      case of_time: return &x.time;
      case of_time_old: return &x.time_old;
      case of_temperature: return &x.temperature;
      case of_temperature_old: return &x.temperature_old;
      case of_field: return x.field + f.at;
      case of_field_old: return x.field_old + f.at;
      case of_energy_old: return x.energy_old + f.at;
      default: return x.state + f.at;
    }
  }

  // How many points failed, in a solve or by a number that is not finite; or that there was no memory.
  int64_t run(int points, bool with_slopes) {
    Given in[package::reads + 1];
    Gives out[package::gives + 1];
    int64_t at = 0;
    int count = 0, written = 0;
    for (int i = 0; i < package::inputs; at += package::read_size[i++]) in[count++] = {read + at * n, 0, 1, n, 0};
    at = 0;
    for (int i = 0; i < package::parameters + package::constants; ++i) {
      in[count++] = {i < package::parameters ? constants + at : package::stored[i].data, 0, 0, 1, 0};
      at += package::read_size[package::inputs + i];
    }
    at = 0;
    for (int i = 0; i < package::outputs; at += package::gives_size[i++]) out[written++] = {given + at * n, 0, 1, n};
    at = 0;
    for (int i = 0; i < package::blocks; at += package::gives_size[package::outputs + i++])
      out[written++] = {slopes + at * n, 0, 1, n};
    int8_t reason[package::solves * n + 1];
    int32_t iterations[package::solves * n + 1], pivoted[package::solves * n + 1];
    real residual[package::solves * n + 1];
    Reports::One reports[package::solves + 1];
    Knobs knobs[package::solves + 1];
    for (int s = 0; s < package::solves; ++s) {
      reports[s] = {reason + s * n, iterations + s * n, residual + s * n, pivoted + s * n};
      knobs[s] = knobs_of(package::source_rules[s]);
    }
    const auto entry = with_slopes && package::blocks > 0 ? INGOT_UMAT_SLOPES : forward;
    if (const int32_t error = guarded([&] { entry(in, out, knobs, reports, points, 0, 1, 0, points); })) return error;
    int64_t failed = 0;
    for (int p = 0; p < points; ++p) {
      bool bad = false;
      for (int s = 0; s < package::solves; ++s) bad |= reason[s * n + p] != converged;
      failed += bad || !all_finite(p);
    }
    return failed;
  }

  // A component of an output or a block at a point.
  double output(int i, int64_t k, int p) const { return double(given[(sum(package::gives_size, i) + k) * n + p]); }
  double block(int i, int64_t k, int p) const {
    return double(slopes[(sum(package::gives_size + package::outputs, i) + k) * n + p]);
  }
  // The derivative of stress, rows and columns in Mandel components: by strain; at finite strain that of
  // the Kirchhoff stress as the body is stretched without spin, its Jaumann rate.
  void find_tangent(const double* f, double* c) const {
    const auto slope = [&](int k) { return block(tangent_at, k, 0); };
    if (!is_finite) {
      for (int k = 0; k < 36; ++k) c[k] = slope(k);
      return;
    }
    for (int m = 0; m < 6; ++m) {
      const int r = planes[m][0], s = planes[m][1];
      for (int i = 0; i < 6; ++i) {
        double entry = 0;  // of the rate n r s + n s r, which moves rows r and s of the gradient
        for (int k = 0; k < 3; ++k) {
          entry += slope(9 * i + 3 * r + k) * f[3 * s + k];
          if (r != s) entry += slope(9 * i + 3 * s + k) * f[3 * r + k];
        }
        c[6 * i + m] = entry * (r == s ? 1.0 : root_half);
      }
    }
  }

  void keep_states(int p, double* to) const {
    for (int s = 0; s < states; ++s)
      for (int k = 0; k < kept[s].size; ++k) to[kept[s].at + k] = output(kept[s].output, k, p);
  }

  bool all_finite(int p) const {
    double found = 0;
    for (int64_t k = 0; k < out_total; ++k) found += 0 * double(given[k * n + p]);
    return found == 0;
  }
};

inline double determinant(const double* f) {
  return f[0] * (f[4] * f[8] - f[5] * f[7]) - f[1] * (f[3] * f[8] - f[5] * f[6]) + f[2] * (f[3] * f[7] - f[4] * f[6]);
}

// D a D^T of a symmetric tensor; the matrix as Fortran lays it, columns one after another.
inline void rotate(double* a, const double* turn) {
  double full[3][3], half[3][3] = {};
  for (int m = 0; m < 6; ++m) {
    const int i = planes[m][0], j = planes[m][1];
    full[i][j] = full[j][i] = a[m] * (m < 3 ? 1.0 : root_half);
  }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k) half[i][j] += turn[i + 3 * k] * full[k][j];
  for (int m = 0; m < 6; ++m) {
    double entry = 0;
    for (int k = 0; k < 3; ++k) entry += half[planes[m][0]][k] * turn[planes[m][1] + 3 * k];
    a[m] = entry * (m < 3 ? 1.0 : root_two);
  }
}

// A host that knows rotations apart from strains turns its own tensors; those of STATEV are ours.
inline void rotate_states(double* values, const double* turn) {
  bool turned = false;
  for (int i = 0; i < 9; ++i) turned |= turn[i] != double(i % 4 == 0);
  if (!turned || is_finite) return;
  for (int s = 0; s < states; ++s) {
    if (kept[s].turns == cannot) stop("has a state that DROT cannot turn: use LogarithmicStrain (STATEV %d)",
                                       kept[s].at + 1);
    for (int k = 0; kept[s].turns == symmetric && k < kept[s].size; k += 6) rotate(values + kept[s].at + k, turn);
  }
}

// The values that states begin with, where the host has set none: all are zero, and so is total time.
template <class T> void begin_states(double* values, const T* given, double total_time) {
  bool blank = total_time <= 0;
  for (int k = 0; k < numbers; ++k) values[k] = double(given[k]), blank &= values[k] == 0;
  for (int k = 0; blank && k < numbers; ++k) values[k] = initial[k];
}

constexpr bool reads(Source wanted) {
  for (const From& f : from)
    if (package::inputs && f.source == wanted) return true;
  return false;
}

// The ends of a step. A host knows its length, of which total time keeps few digits or none: a model
// that reads nothing else is given just that, from zero on. Others are told where it is lost.
inline void take_time(Point& x, double begin, double end, double length) {
  x.time_old = is_autonomous ? 0 : begin, x.time = is_autonomous ? length : end;
  const double read = double(real(x.time)) - double(real(x.time_old));
  if (reads(of_time) && reads(of_time_old) && std::fabs(read - length) > step_error * std::fabs(length))
    stop("reads total time, in whose precision a step of %g at %g is %g: compile it with --dtype float64, or"
         " let time begin at zero again", length, end, read);
}

// One point, which fills a block of its own: blocks that are whole are read and written faster.
using Single = Call<W>;

inline bool update_point(Single& call, const Point& x) {
  call.take(0, W, x);
  return call.run(W, true) == 0;
}

// The strain across a plane once the logarithm of that stretch has changed; small strains are such logarithms.
inline double stretch(double across, double change) {
  return is_finite ? (1 + across) * std::exp(std::fmax(-1.0, std::fmin(1.0, change))) - 1 : across + change;
}

// Find the strain across a plane at which there is no stress across it, from that of the last step.
inline bool solve_thickness(Single& call, Point& x, double& across, double* c) {
  double change = 0, last = INFINITY;
  int failures = 0;
  for (int update = 0; update < thickness_updates; ++update) {
    const double now = stretch(across, change);
    if (is_finite) x.gradient[8] = 1 + now;
    else x.strain[thickness] = now;
    if (!update_point(call, x)) {  // for want of digits, or too far away: a strain between may do
      if (change == 0 || ++failures > thickness_failures) return false;
      change *= 0.5;
      continue;
    }
    call.find_tangent(x.gradient, c);
    across = now;
    const double pressed = call.output(stress_at, thickness, 0), wrong = std::fabs(pressed);
    double largest = 0, size = is_finite ? 1 : 0;
    for (int m = 0; m < 6; ++m) {
      largest = std::fmax(largest, std::fabs(call.output(stress_at, m, 0)));
      if (!is_finite) size = std::fmax(size, std::fabs(x.strain[m]));
    }
    change = -pressed / c[7 * thickness];
    const double lost = std::fabs(change) / (epsilon * size);
    if (wrong <= exact_stress * largest || lost <= 0.5) return true;
    const bool is_stuck = wrong >= 0.5 * last;  // no update helps any more
    if (is_stuck && (wrong <= solved_stress * largest || lost <= lost_strain)) return true;
    if (!(std::fabs(change) < 1e3)) return false;
    last = wrong;
  }
  return false;
}

// The second Piola-Kirchhoff stress of a Kirchhoff stress, and the derivative of the one by Green's strain
// of that of the other by stretches without spin: S = G t, dS/dE = G (c - h) G^T with h D = D t + t D and
// G x = F^-1 x F^-T; heat: the derivative by temperature, which is pulled back as the stress is. All in
// Mandel components.
inline void pull_back(const double* f, double* stress, double* heat, double* c) {
  const double volume = determinant(f);
  double back[3][3], g[6][6], full[3][3];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const int a = (j + 1) % 3, b = (j + 2) % 3, r = (i + 1) % 3, s = (i + 2) % 3;
      back[i][j] = (f[3 * a + r] * f[3 * b + s] - f[3 * a + s] * f[3 * b + r]) / volume;
    }
  for (int m = 0; m < 6; ++m) {
    const int i = planes[m][0], j = planes[m][1];
    full[i][j] = full[j][i] = stress[m] * (m < 3 ? 1.0 : root_half);
    for (int n = 0; n < 6; ++n) {
      const int r = planes[n][0], s = planes[n][1];
      const double entry = r == s ? back[i][r] * back[j][r] : back[i][r] * back[j][s] + back[i][s] * back[j][r];
      g[m][n] = entry * (m < 3 ? 1.0 : root_two) * (n < 3 ? 1.0 : root_half);
    }
  }
  for (int n = 0; n < 6; ++n) {  // h by its columns: for D of each plane the symmetric part of 2 D t
    const int r = planes[n][0], s = planes[n][1];
    const double unit = n < 3 ? 1.0 : root_half;
    for (int m = 0; m < 6; ++m) {
      const int i = planes[m][0], j = planes[m][1];
      double entry = 0;
      if (i == r) entry += full[s][j];
      if (j == r) entry += full[i][s];
      if (r != s && i == s) entry += full[r][j];
      if (r != s && j == s) entry += full[i][r];
      c[6 * m + n] -= entry * unit * (m < 3 ? 1.0 : root_two);
    }
  }
  double half[36], given[6], warm[6];
  for (int m = 0; m < 6; ++m) {
    given[m] = stress[m], warm[m] = heat[m];
    for (int n = 0; n < 6; ++n) {
      half[6 * m + n] = 0;
      for (int k = 0; k < 6; ++k) half[6 * m + n] += g[m][k] * c[6 * k + n];
    }
  }
  for (int m = 0; m < 6; ++m) {
    stress[m] = heat[m] = 0;
    for (int k = 0; k < 6; ++k) stress[m] += g[m][k] * given[k], heat[m] += g[m][k] * warm[k];
    for (int n = 0; n < 6; ++n) {
      c[6 * m + n] = 0;
      for (int k = 0; k < 6; ++k) c[6 * m + n] += half[6 * m + k] * g[n][k];
    }
  }
}

// A deformation gradient of a Green's strain: upper triangular, F^T F = 1 + 2 E. Which of those that
// have this strain is of no matter to what is pulled back. False where there is none.
inline bool find_gradient(const double* strain, double* f) {
  double c[3][3];
  for (int m = 0; m < 6; ++m) {
    const int i = planes[m][0], j = planes[m][1];
    c[i][j] = c[j][i] = m < 3 ? 1 + 2 * strain[m] : root_two * strain[m];
  }
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < i; ++k)
      for (int j = i; j < 3; ++j) c[i][j] -= f[3 * k + i] * f[3 * k + j];
    if (!(c[i][i] > 0)) return false;
    const double pivot = std::sqrt(c[i][i]);
    for (int j = 0; j < 3; ++j) f[3 * i + j] = j < i ? 0 : c[i][j] / pivot;
  }
  return true;
}

inline void copy_matrix(double* rows, const double* columns) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) rows[3 * i + j] = columns[i + 3 * j];
}

inline void update(double* stress, double* statev, double* ddsdde, double* const* energies, double* ddsddt,
                   const double* stran, const double* dstran, const double* time, double dtime, double temp,
                   double dtemp, const double* predef, const double* dpred, int ndi, int nshr, int ntens,
                   int nstatv, const double* props, int nprops, const double* drot, double* pnewdt,
                   const double* dfgrd0, const double* dfgrd1) {
  if (is_finite && !is_lagrangian && umat_abaqus_)
    stop("is of finite strain as Abaqus has it: compile it with --umat-host calculix");
  if (is_lagrangian && ndi != 3) stop("is for solids of CalculiX, with NDI = 3; got %d", ndi);
  const bool is_plane = ndi == 2 && nshr == 1;
  if (ntens != ndi + nshr || (!is_plane && (ndi != 3 || (nshr != 1 && nshr != 3))))
    stop("is for NDI = 3 with NSHR = 3 or 1, and for NDI = 2 with NSHR = 1; got %d and %d", ndi, nshr);
  if (properties && nprops != properties) stop("is given NPROPS = %d, and has %d", nprops, properties);
  const int wanted = numbers + (is_plane ? 1 : 0);
  if (nstatv < wanted) stop("is given NSTATV = %d, and needs %d", nstatv, wanted);
  int places[6];
  for (int i = 0; i < ntens; ++i) places[i] = i < ndi ? i : mandel_of_umat[i - ndi + 3];
  Point x{};
  begin_states(x.state, statev, time[1]);
  rotate_states(x.state, drot);
  for (int i = 0; i < ntens; ++i) {
    const bool shear = i >= ndi;
    const int m = places[i];
    x.strain_old[m] = stran[i] * (shear ? root_half : 1.0);
    x.strain[m] = (stran[i] + dstran[i]) * (shear ? root_half : 1.0);
    x.stress_old[m] = stress[i] * (shear ? root_two : 1.0);
  }
  bool done = true;
  if (is_lagrangian) done = find_gradient(x.strain, x.gradient) && find_gradient(x.strain_old, x.gradient_old);
  else if (is_finite) copy_matrix(x.gradient, dfgrd1), copy_matrix(x.gradient_old, dfgrd0);
  take_time(x, time[1], time[1] + dtime, dtime);
  x.temperature = temp + dtemp, x.temperature_old = temp;
  for (int k = 0; k < fields; ++k) x.field[k] = predef[k] + dpred[k], x.field_old[k] = predef[k];
  for (int k = 0; k < 3; ++k) x.energy_old[k] = *energies[k];
  Single call;
  call.take_properties(props);
  double across = is_plane ? statev[numbers] : 0;
  if (is_plane) {
    x.strain_old[thickness] = across, x.gradient_old[8] = 1 + across;
    x.gradient[2] = x.gradient[5] = x.gradient[6] = x.gradient[7] = 0;
  }
  double c[36];
  done = done && (is_plane ? solve_thickness(call, x, across, c) : update_point(call, x));
  if (!done) {  // the host's arrays stay as they were, and the host takes a shorter step
    *pnewdt = std::fmin(*pnewdt, cut);
    return;
  }
  const double volume = is_finite && !is_lagrangian ? determinant(x.gradient) : 1;
  double result[6], heat[6];
  for (int m = 0; m < 6; ++m) {
    result[m] = call.output(stress_at, m, 0);
    heat[m] = heat_at < 0 ? 0 : call.block(heat_at, m, 0);
  }
  if (!is_plane) call.find_tangent(x.gradient, c);
  if (is_lagrangian) pull_back(x.gradient, result, heat, c);
  for (int i = 0; i < ntens; ++i) stress[i] = result[places[i]] * (i >= ndi ? root_half : 1.0) / volume;
  for (int i = 0; i < ntens; ++i)
    for (int j = 0; j < ntens; ++j) {
      const int a = 6 * places[i], b = places[j], t = thickness;
      double entry = c[a + b];
      if (is_plane) entry -= c[a + t] * c[6 * t + b] / c[7 * t];
      const int shears = (i >= ndi) + (j >= ndi);
      ddsdde[i + ntens * j] = entry * (shears == 2 ? 0.5 : shears ? root_half : 1.0) / volume;
    }
  for (int i = 0; heat_at >= 0 && i < ntens; ++i) {
    double entry = heat[places[i]];
    if (is_plane) entry -= c[6 * places[i] + thickness] * heat[thickness] / c[7 * thickness];
    ddsddt[i] = entry * (i >= ndi ? root_half : 1.0) / volume;
  }
  for (int k = 0; k < 3; ++k)
    if (energy_at[k] >= 0) *energies[k] = call.output(energy_at[k], 0, 0);
  call.keep_states(0, statev);
  if (is_plane) statev[numbers] = across;
}

// A block of points in the frame that turns with them: tensor shear strains, columns of points.
template <class T>
void update_block(int nblock, int ndir, int nshr, int nstatev, int nfieldv, int nprops, T total_time, T dt,
                  const T* props, const T* density, const T* strain_inc, const T* temp_old, const T* stretch_old,
                  const T* field_before, const T* stress_before, const T* state_old, const T* energy_before,
                  const T* inelastic_old, const T* temp_new, const T* stretch_new, const T* field_after, T* stress_new,
                  T* state_new, T* energy_new, T* inelastic_new) {
  constexpr int chunk = 64;
  // in single precision a strain has a second part, or increments of less than 1e-7 of it would be lost
  constexpr int strains = is_finite ? 0 : sizeof(T) == 4 ? 12 : 6;
  const int ntens = ndir + nshr;
  if (nblock < 0) stop("is given nblock = %d", nblock);
  if (ndir != 3 || (nshr != 1 && nshr != 3)) stop("is for ndir = 3 with nshr = 3 or 1; got %d and %d", ndir, nshr);
  if (properties && nprops != properties) stop("is given nprops = %d, and has %d", nprops, properties);
  if (nstatev < numbers + strains) stop("is given nstatev = %d, and needs %d", nstatev, numbers + strains);
  if (nfieldv < fields) stop("is given nfieldv = %d, and reads %d", nfieldv, fields);
  static thread_local Call<chunk> call;  // too large for the stack of a host's thread
  call.take_properties(props);
  for (int first = 0; first < nblock; first += chunk) {
    const int points = nblock - first < chunk ? nblock - first : chunk;
    for (int p = 0; p < points; ++p) {
      const int at = first + p;
      Point x{};
      double given[numbers + 7] = {};
      for (int k = 0; k < numbers; ++k) given[k] = double(state_old[at + k * nblock]);
      begin_states(x.state, given, double(total_time - dt));
      for (int i = 0; i < ntens; ++i) {
        const int m = mandel_of_vumat[i], r = planes[m][0], s = planes[m][1];
        const double scale = i < 3 ? 1.0 : root_two;
        for (int k = m; k < strains; k += 6) x.strain_old[m] += double(state_old[at + (numbers + k) * nblock]);
        x.strain[m] = x.strain_old[m] + double(strain_inc[at + i * nblock]) * scale;
        x.stress_old[m] = double(stress_before[at + i * nblock]) * scale;
        x.gradient[3 * r + s] = x.gradient[3 * s + r] = double(stretch_new[at + i * nblock]);
        x.gradient_old[3 * r + s] = x.gradient_old[3 * s + r] = double(stretch_old[at + i * nblock]);
      }
      for (int k = 0; k < strains; ++k) {
        const double rest = k < 6 ? 0 : double(T(x.strain[k % 6]));
        state_new[at + (numbers + k) * nblock] = T(x.strain[k % 6] - rest);
      }
      for (int k = numbers + strains; k < nstatev; ++k) state_new[at + k * nblock] = state_old[at + k * nblock];
      take_time(x, double(total_time) - double(dt), double(total_time), double(dt));
      x.temperature = double(temp_new[at]), x.temperature_old = double(temp_old[at]);
      for (int k = 0; k < fields; ++k) {
        x.field[k] = double(field_after[at + k * nblock]);
        x.field_old[k] = double(field_before[at + k * nblock]);
      }
      x.energy_old[1] = double(inelastic_old[at]) * double(density[at]);
      call.take(p, p + 1, x);
    }
    const int64_t failed = call.run(points, false);
    if (failed != 0) stop("failed at %d points of a block that begins at %d", int(failed), first);
    for (int p = 0; p < points; ++p) {
      const int at = first + p;
      double values[numbers + 1], work = 0, volume = 1;
      call.keep_states(p, values);
      for (int k = 0; k < numbers; ++k) state_new[at + k * nblock] = T(values[k]);
      if (is_finite) {
        double u[9] = {};
        for (int i = 0; i < ntens; ++i) {
          const int m = mandel_of_vumat[i], r = planes[m][0], s = planes[m][1];
          u[3 * r + s] = u[3 * s + r] = double(stretch_new[at + i * nblock]);
        }
        volume = determinant(u);
      }
      for (int i = 0; i < ntens; ++i) {
        const int place = at + i * nblock;
        const double component = call.output(stress_at, mandel_of_vumat[i], p);
        stress_new[place] = T(component * (i < 3 ? 1.0 : root_half) / volume);
        const double mean = 0.5 * (double(stress_before[place]) + double(stress_new[place]));
        work += mean * double(strain_inc[place]) * (i < 3 ? 1.0 : 2.0);
      }
      energy_new[at] = T(double(energy_before[at]) + work / double(density[at]));
      inelastic_new[at] = energy_at[1] < 0 ? inelastic_old[at] : T(call.output(energy_at[1], 0, p) / double(density[at]));
    }
  }
}

}  // namespace umat
}  // namespace
}  // namespace ingot

#define INGOT_UMAT_ARGUMENTS                                                                                      \
  double *stress, double *statev, double *ddsdde, double *sse, double *spd, double *scd, double *, double *ddsddt,  \
      double *, double *, const double *stran, const double *dstran, const double *time, const double *dtime,      \
      const double *temp, const double *dtemp, const double *predef, const double *dpred, const char *,            \
      const int *ndi, const int *nshr, const int *ntens, const int *nstatv, const double *props,                   \
      const int *nprops, const double *, const double *drot, double *pnewdt, const double *, const double *dfgrd0, \
      const double *dfgrd1, const int *, const int *, const int *, const int *, const int *, const int *
#define INGOT_UMAT_CALL                                                                                           \
  ingot::umat::require({stress, statev, ddsdde, sse, spd, scd, ddsddt, stran, dstran, time, dtime, temp, dtemp,   \
                        predef, dpred, ndi, nshr, ntens, nstatv, props, nprops, drot, pnewdt, dfgrd0, dfgrd1});   \
  double *const energies[] = {sse, spd, scd};                                                                     \
  ingot::umat::update(stress, statev, ddsdde, energies, ddsddt, stran, dstran, time, *dtime, *temp, *dtemp,       \
                      predef, dpred, *ndi, *nshr, *ntens, *nstatv, props, *nprops, drot, pnewdt, dfgrd0, dfgrd1)
#define INGOT_VUMAT_ARGUMENTS(T)                                                                                  \
  const int *nblock, const int *ndir, const int *nshr, const int *nstatev, const int *nfieldv, const int *nprops, \
      const int *, const T *, const T *total_time, const T *dt, const char *, const T *, const T *, const T *props, \
      const T *density, const T *strain_inc, const T *, const T *temp_old, const T *stretch_old, const T *,       \
      const T *field_old, const T *stress_old, const T *state_old, const T *energy_old, const T *inelastic_old,   \
      const T *temp_new, const T *stretch_new, const T *, const T *field_new, T *stress_new, T *state_new,        \
      T *energy_new, T *inelastic_new
#define INGOT_VUMAT_CALL                                                                                          \
  ingot::umat::require({nblock, ndir, nshr, nstatev, nfieldv, nprops, total_time, dt, props, density, strain_inc, \
                        temp_old, stretch_old, field_old, stress_old, state_old, energy_old, inelastic_old,       \
                        temp_new, stretch_new, field_new, stress_new, state_new, energy_new, inelastic_new});     \
  ingot::umat::update_block(*nblock, *ndir, *nshr, *nstatev, *nfieldv, *nprops, *total_time, *dt, props, density, \
                            strain_inc, temp_old, stretch_old, field_old, stress_old, state_old, energy_old,      \
                            inelastic_old, temp_new, stretch_new, field_new, stress_new, state_new, energy_new,   \
                            inelastic_new)
