// Random calls of a user material, right and wrong, watched by sanitizers: `campaign CALLS SEED`. A call
// that the material ends comes back by an exception of `xit_`, which hosts have and we define.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include NAME_H

extern "C" void umat_(double*, double*, double*, double*, double*, double*, double*, double*, double*, double*,
                      const double*, const double*, const double*, const double*, const double*, const double*,
                      const double*, const double*, const char*, const int*, const int*, const int*, const int*,
                      const double*, const int*, const double*, const double*, double*, const double*, const double*,
                      const double*, const int*, const int*, const int*, const int*, const int*, const int*);
extern "C" void vumat_(const int*, const int*, const int*, const int*, const int*, const int*, const int*,
                       const double*, const double*, const double*, const char*, const double*, const double*,
                       const double*, const double*, const double*, const double*, const double*, const double*,
                       const double*, const double*, const double*, const double*, const double*, const double*,
                       const double*, const double*, const double*, const double*, double*, double*, double*, double*);

struct Ended {};
extern "C" void xit_(void) { throw Ended{}; }

static std::mt19937_64 dice;
static int draw(std::vector<int> from) { return from[dice() % from.size()]; }
static bool seldom(int of) { return dice() % uint64_t(of) == 0; }

// Numbers of exactly so many entries, some of which are wild in some calls.
struct Numbers {
  std::unique_ptr<double[]> data;
  size_t count;
  double* pointer;
  Numbers(int n, double size, double base = 0) : data(new double[size_t(n > 0 ? n : 0)]), count(size_t(n > 0 ? n : 0)) {
    for (size_t i = 0; i < count; ++i) data[i] = base + size * std::normal_distribution<double>()(dice);
    const double wild[] = {NAN, INFINITY, -INFINITY, 1e308, -1e300, 1e-320, 0, -1, 7, 100};
    if (count && seldom(40)) data[dice() % count] = wild[dice() % 10];
    pointer = seldom(600) ? nullptr : data.get();
  }
};

enum Result { fine, cut, ended };

static Result call_umat() {
  const int ndi = draw({3, 3, 3, 3, 3, 2, 1, 0, -1, 4}), nshr = ndi == 2 ? 1 : draw({3, 3, 3, 1, 1, 0, 2, -1});
  const int ntens = seldom(30) ? draw({6, 4, 3, 0, -5, 7, 2147483647}) : ndi + nshr;
  const int wanted = STATES + (ndi == 2), nstatv = seldom(15) ? draw({0, 1, -1, wanted - 1, -2147483647}) : wanted;
  const int nprops = seldom(15) ? draw({0, 1, 3, -1, 2147483647}) : 2, counts[] = {ndi, nshr, ntens, nstatv, nprops};
  const int room = ntens > 0 && ntens < 8 ? ntens : 0, states = nstatv > 0 ? nstatv : 0;
  Numbers stress(room, 10), statev(states, seldom(3) ? 1e-3 : 0), ddsdde(room * room, 0), energies(3, 0), rest(8, 0);
  Numbers stran(room, 1e-3), dstran(room, 1e-3), time(2, 0, 1), scalars(6, 0, 0.5), props(nprops == 2 ? 2 : 0, 1, 200);
  Numbers drot(9, 0), f0(9, 0.01), f1(9, 0.01), pnewdt(1, 0, 1);
  for (int i = 0; i < 9; i += 4) {
    if (drot.data[i] == 0) drot.data[i] = 1;
    f0.data[i] += 1, f1.data[i] += 1;
  }
  if (states && statev.count) statev.data[states - 1] *= 1e-3;
  const std::vector<double> before(stress.data.get(), stress.data.get() + room),
      kept(statev.data.get(), statev.data.get() + states);
  const double step = pnewdt.data[0] = 1;
  double* e = energies.pointer;
  const int* lost = seldom(300) ? nullptr : counts;
  try {
    umat_(stress.pointer, statev.pointer, ddsdde.pointer, e, e ? e + 1 : e, e ? e + 2 : e, rest.data.get(),
          rest.pointer, rest.data.get(), rest.data.get(), stran.pointer, dstran.pointer, time.pointer, scalars.pointer,
          scalars.pointer, scalars.data.get() + 1, scalars.data.get() + 2, scalars.data.get() + 3, "MATERIAL", lost,
          counts + 1, counts + 2, counts + 3, props.pointer, counts + 4, rest.data.get(), drot.pointer, pnewdt.pointer,
          rest.data.get(), f0.pointer, f1.pointer, counts, counts, counts, counts, counts, counts);
  } catch (const Ended&) {
    if (room && std::memcmp(before.data(), stress.data.get(), sizeof(double) * size_t(room))) std::abort();
    return ended;
  }
  const bool is_cut = !(pnewdt.data[0] == step);
  const auto changed = [](const std::vector<double>& a, const double* b) {
    return !a.empty() && std::memcmp(a.data(), b, sizeof(double) * a.size()) != 0;
  };
  if (is_cut && (changed(before, stress.data.get()) || changed(kept, statev.data.get()))) std::abort();
  double found = 0;
  for (int i = 0; !is_cut && i < room; ++i) found += 0 * stress.data[i];
  if (std::isnan(found)) std::abort();  // what is not finite is told
  return is_cut ? cut : fine;
}

static Result call_vumat() {
  const int nblock = draw({1, 1, 2, 7, 63, 64, 65, 70, 0, -1}), ndir = seldom(10) ? draw({2, 1, 0, -3}) : 3;
  const int nshr = seldom(10) ? draw({0, 2, -1}) : draw({3, 1}), wanted = STATES + 6;
  const int nstatev = seldom(15) ? draw({0, STATES, -1}) : wanted, nprops = seldom(15) ? draw({0, 1, -1}) : 2;
  const int nfieldv = draw({0, 0, 1, -1}), lanneal = 0;
  const int n = nblock > 0 ? nblock : 0, ntens = ndir + nshr > 0 ? ndir + nshr : 0, states = nstatev > 0 ? nstatev : 0;
  Numbers props(nprops == 2 ? 2 : 0, 1, 200), times(3, 0, 1), density(n, 0, 2), inc(n * ntens, 1e-3), temp(n, 0);
  Numbers stretch0(n * ntens, 0.01), stretch1(n * ntens, 0.01), before(n * ntens, 10), old(n * states, 0), energy(n, 0);
  Numbers stress(n * ntens, 0), state(n * states, 0), made(n, 0), lost(n, 0), rest(8 + n, 0), field(n, 0);
  for (int i = 0; i < n * (ntens < 3 ? ntens : 3); ++i) stretch0.data[i] += 1, stretch1.data[i] += 1;
  try {
    vumat_(&nblock, &ndir, &nshr, &nstatev, &nfieldv, &nprops, &lanneal, times.pointer, times.pointer, times.pointer,
           "MATERIAL", rest.data.get(), rest.data.get(), props.pointer, density.pointer, inc.pointer, rest.data.get(),
           temp.pointer, stretch0.pointer, rest.data.get(), field.pointer, before.pointer, old.pointer, energy.pointer,
           energy.pointer, temp.pointer, stretch1.pointer, rest.data.get(), field.pointer, stress.pointer,
           state.pointer, made.pointer, lost.pointer);
  } catch (const Ended&) {
    return ended;
  }
  return fine;
}

int main(int, char** words) {
  const int calls = std::atoi(words[1]);
  dice.seed(uint64_t(std::atoll(words[2])));
  int found[3] = {};
  for (int i = 0; i < calls; ++i) ++found[i % 3 ? call_umat() : call_vumat()];
  std::printf("%d fine, %d cut, %d ended\n", found[fine], found[cut], found[ended]);
  return 0;
}
