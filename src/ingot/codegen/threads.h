// Runs the lines of a kernel by threads of a GPU, one a point; what steps.h is for blocks of points.
#pragma once
#include "entry.h"
#include "newton.h"

// The names of kernels, which a module shows: with a prefix of its own.
#ifndef INGOT_NAME
#define INGOT_NAME(entry) entry
#endif
// Bytes of shared memory that a block of a kernel is started with, which a module shows beside it.
#define INGOT_JOIN(name, end) name##end
#define INGOT_BYTES_OF(name) INGOT_JOIN(name, _shared_bytes)
#define INGOT_SHARED_BYTES(entry) extern "C" __device__ int INGOT_BYTES_OF(INGOT_NAME(entry))

namespace ingot {
namespace {

// What a kernel is called with, by value: arrays that lie in the memory of the GPU.
template <int inputs, int outputs, int solves> struct Task {
  Given in[inputs];
  Gives out[outputs];
  Reports::One reports[solves];
  Knobs knobs[solves];
  int64_t points, first_step, steps;
};

// All steps of all points; reports are (steps, points). What depends on the parameters
// [first_parameter, end_parameter) alone is hoisted: computed once a block of threads where they are
// the same for all points.
template <int hoisted, int first_parameter, int end_parameter, class Task, class Point, class Hoist>
INGOT_INLINE void each_point(const Task& task, Point point, Hoist hoist) {
  __shared__ V shared[hoisted + 1];
  [[maybe_unused]] V own[hoisted + 1];
  bool fixed = true;
  for (int i = first_parameter; i < end_parameter; ++i) fixed &= task.in[i].point == 0;
  if (hoisted && fixed) {
    if (threadIdx.x == 0) hoist(Inputs{task.in, task.first_step, 0, 1}, shared);
    __syncthreads();
  }
  const int64_t threads = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < task.points; i += threads) {
    if (hoisted && !fixed) hoist(Inputs{task.in, task.first_step, i, 1}, own);
    for (int64_t k = 0; k < task.steps; ++k) {
      Reports to{task.reports, k * task.points + i, task.points, 1};
      point(Inputs{task.in, task.first_step + k, i, 1}, Outputs{task.out, task.first_step + k, i, 1},
            task.knobs, to, fixed ? shared : own);
    }
  }
}

}  // namespace
}  // namespace ingot
