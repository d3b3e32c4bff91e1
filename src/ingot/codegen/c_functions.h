// The C functions of a package, behind the tables that describe it: what a caller gives is checked
// before any of it is read, then all points run, a few at a time.
#pragma once
#include "steps.h"

namespace ingot {
namespace {
namespace package {

using Entry = void (*)(const Given*, const Gives*, const Knobs*, const Reports::One*, int64_t, int64_t, int64_t,
                       int64_t, int64_t);

// What an entry gives beside outputs: nothing, derivative blocks, or adjoints for cotangents.
enum Kind { gives_values, gives_blocks, gives_adjoints };

constexpr int reads = inputs + cotangents + parameters + constants;
constexpr int gives = outputs + (blocks > adjoints ? blocks : adjoints);
constexpr int64_t most_points = INT64_MAX / (int64_t(sizeof(Status)) * largest);
constexpr int64_t chunk = 64;  // a multiple of every W; what solves report of so many lies on the stack

// All that a call hands over, once it is known to be lawful.
struct Call {
  int64_t points;
  Given in[reads + 1];
  int64_t numbers[reads + 1];  // how many each array has that is read
  Gives out[gives + 1];
  int read, written, first_cotangent, end_cotangent;
  Knobs knobs[solves + 1];
  bool batch[solves + 1], together;  // whether a solve, and whether any, has `stop = batch`
};

struct Bytes {
  uintptr_t begin, end;
  Bytes(const void* p, int64_t count, int64_t size) : begin(uintptr_t(p)), end(begin + uintptr_t(count * size)) {}
  bool meets(Bytes other) const { return begin < other.end && other.begin < end; }
};

template <class T> bool aligned(const T* p) { return uintptr_t(p) % alignof(T) == 0; }

// What is wrong with a pointer to numbers that are read or written, if anything.
template <class T> int32_t wrong(const T* p) { return !p ? bad_pointer : aligned(p) ? 0 : bad_alignment; }

INGOT_CALL int32_t take_rules(Call& call, const Rules* rules) {
  if (!aligned(rules)) return bad_alignment;
  for (int s = 0; s < solves; ++s) {
    const Rules& chosen = rules ? rules[s] : source_rules[s];
    if (!lawful(chosen)) return bad_rules;
    call.knobs[s] = knobs_of(chosen);
    call.batch[s] = chosen.stop != 0;
    call.together |= call.batch[s];
  }
  return 0;
}

// An array of `size` numbers a point, or of so many for all points.
INGOT_CALL void take(Call& call, int at, const real* data, int64_t size, bool shared) {
  call.in[at] = {data, 0, shared ? 0 : size, 1, 0};
  call.numbers[at] = shared ? size : call.points * size;
}

INGOT_CALL int32_t take_parameters(Call& call, const Values* given) {
  if (!aligned(given)) return bad_alignment;
  call.read = call.end_cotangent + parameters + constants;
  for (int i = 0; i < parameters + constants; ++i) {
    const int64_t size = read_size[inputs + i];
    const bool chosen = given && i < parameters && given[i].data;
    const Values& x = chosen ? given[i] : stored[i];
    if (x.count != 1 && x.count != call.points) return chosen ? bad_count : bad_points;
    if (!aligned(x.data)) return bad_alignment;
    if (chosen && !in_range(i, x.data, x.count * size)) return bad_range;
    take(call, call.end_cotangent + i, x.data, size, x.count == 1);
  }
  return 0;
}

INGOT_CALL int32_t take_inputs(Call& call, const real* const* given) {
  if (inputs && wrong(given)) return wrong(given);
  for (int i = 0; i < inputs; ++i) {
    if (const int32_t error = wrong(given[i])) return error;
    take(call, i, given[i], read_size[i], false);
  }
  return 0;
}

// A cotangent that is not given is zero.
INGOT_CALL int32_t take_cotangents(Call& call, const real* const* given) {
  static constexpr real zero = 0;
  const int count = call.end_cotangent - call.first_cotangent;
  if (count && wrong(given)) return wrong(given);
  for (int i = 0; i < count; ++i) {
    const int at = call.first_cotangent + i;
    if (!aligned(given[i])) return bad_alignment;
    if (given[i])
      take(call, at, given[i], gives_size[i], false);
    else
      call.in[at] = {&zero, 0, 0, 0, 0}, call.numbers[at] = 0;
  }
  return 0;
}

INGOT_CALL int32_t take_outputs(Call& call, real* const* given, const int64_t* sizes, int count) {
  if (count && wrong(given)) return wrong(given);
  for (int i = 0; i < count; ++i) {
    if (const int32_t error = wrong(given[i])) return error;
    call.out[call.written++] = {given[i], 0, sizes[i], 1};
  }
  return 0;
}

// A point is read before it is written, so an output may take the place of an input that lies as it
// does; no other memory may be used twice, and not even that where the points run twice.
INGOT_CALL bool overlaps(const Call& call, const Status* status) {
  const Bytes reports(solves ? status : nullptr, status ? solves * call.points : 0, sizeof(Status));
  for (int o = 0; o < call.written; ++o) {
    const Gives& out = call.out[o];
    const Bytes own(out.data, call.points * out.point, sizeof(real));
    if (own.meets(reports)) return true;
    for (int i = 0; i < o; ++i)
      if (own.meets(Bytes(call.out[i].data, call.points * call.out[i].point, sizeof(real)))) return true;
    for (int i = 0; i < call.read; ++i) {
      const Given& in = call.in[i];
      const bool in_place = in.data == out.data && in.point == out.point && !call.together;
      if (!in_place && own.meets(Bytes(in.data, call.numbers[i], sizeof(real)))) return true;
    }
  }
  for (int i = 0; i < call.read; ++i)
    if (reports.meets(Bytes(call.in[i].data, call.numbers[i], sizeof(real)))) return true;
  return false;
}

// Whether all cotangents of a point are zero, so that what it gives does not count.
INGOT_CALL bool is_silent(const Call& call, int64_t point) {
  for (int i = call.first_cotangent; i < call.end_cotangent; ++i)
    for (int64_t c = 0; c < call.in[i].point; ++c)
      if (call.in[i].data[point * call.in[i].point + c] != 0) return false;
  return call.first_cotangent < call.end_cotangent;
}

// Run all points; how many failed, whose outputs are NaN. most: the updates of each solve at the
// point that needed most, unless it is null.
INGOT_CALL int64_t run_points(const Call& call, Entry entry, Status* status, int32_t* most) {
  int8_t reason[solves * chunk + 1];
  int32_t iterations[solves * chunk + 1], pivoted[solves * chunk + 1];
  real residual[solves * chunk + 1];
  Reports::One reports[solves + 1];
  for (int64_t s = 0, at = 0; s < solves; ++s, at += chunk)
    reports[s] = {reason + at, iterations + at, residual + at, pivoted + at};
  int64_t failed = 0;
  for (int64_t begin = 0; begin < call.points; begin += chunk) {
    const int64_t n = call.points - begin < chunk ? call.points - begin : chunk;
    Given in[reads + 1];
    Gives out[gives + 1];
    for (int i = 0; i < call.read; ++i) in[i] = call.in[i], in[i].data += begin * in[i].point;
    for (int o = 0; o < call.written; ++o) out[o] = call.out[o], out[o].data += begin * out[o].point;
    bool silent[chunk] = {};  // told before adjoints may take the places of cotangents
    if (solves && adjoints)
      for (int64_t i = 0; i < n; ++i) silent[i] = is_silent(call, begin + i);
    entry(in, out, call.knobs, reports, n, 0, 1, 0, n);
    for (int64_t i = 0; i < n; ++i) {
      bool bad = false;
      for (int64_t s = 0, at = i; s < solves; ++s, at += chunk) {
        bad |= reason[at] != converged;
        if (status) status[s * call.points + begin + i] = {reason[at], iterations[at], residual[at], pivoted[at]};
        if (most && most[s] < iterations[at]) most[s] = iterations[at];
      }
      failed += bad;
      for (int o = 0; bad && o < call.written; ++o)
        for (int64_t c = 0; c < out[o].point; ++c)
          out[o].data[i * out[o].point + c] = silent[i] && o >= outputs ? real(0) : real(nan);
    }
  }
  return failed;
}

// `stop = batch`: once to see who needs most updates, then so many for all.
INGOT_CALL int64_t run_call(Call& call, Entry entry, Status* status) {
  if (call.together) {
    int32_t most[solves + 1] = {};
    run_points(call, entry, nullptr, most);
    for (int s = 0; s < solves; ++s)
      if (call.batch[s]) call.knobs[s].min_its = most[s];
  }
  return run_points(call, entry, status, nullptr);
}

INGOT_CALL int64_t run_all(Entry entry, Kind kind, int64_t points, const real* const* in, const Values* chosen,
                           const Rules* rules, const real* const* cotangent, real* const* out, real* const* more,
                           Status* status) {
  if (points < 0 || points > most_points) return bad_points;
  Call call{};
  call.points = points;
  call.first_cotangent = inputs;
  call.end_cotangent = inputs + (kind == gives_adjoints ? cotangents : 0);
  if (const int32_t error = take_rules(call, rules)) return error;
  if (const int32_t error = take_parameters(call, chosen)) return error;
  if (points == 0) return 0;
  if (const int32_t error = take_inputs(call, in)) return error;
  if (const int32_t error = take_cotangents(call, cotangent)) return error;
  if (const int32_t error = take_outputs(call, out, gives_size, outputs)) return error;
  const bool backwards = kind == gives_adjoints;
  const int beside = backwards ? adjoints : kind == gives_blocks ? blocks : 0;
  if (const int32_t error = take_outputs(call, more, backwards ? read_size : gives_size + outputs, beside)) return error;
  if (!aligned(status)) return bad_alignment;
  if (overlaps(call, status)) return bad_overlap;
  int64_t failed = 0;
  const int32_t error = guarded([&] { failed = run_call(call, entry, status); });
  return error ? error : failed;
}

INGOT_CALL int64_t default_rules(Rules* rules) {
  if (const int32_t error = wrong(rules)) return error;
  for (int s = 0; s < solves; ++s) rules[s] = source_rules[s];
  return 0;
}

}  // namespace package
}  // namespace
}  // namespace ingot
