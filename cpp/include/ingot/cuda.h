// A kernel on a GPU, through CUDA's driver, which is looked for when the first such package is loaded:
// nothing of CUDA is needed to build. A thread computes a point; calls start on a stream.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend.h"

namespace ingot {
namespace detail {

// The functions of libcuda.so.1 that are used here.
class Driver {
 public:
  using Pointer = uint64_t;  // of memory on a GPU

  static const Driver& require() {
    const Driver& made = shared();
    if (!made.library_) throw refuse("no driver", {});
    if (made.status_) made.check(made.status_);
    return made;
  }
  // How many GPUs there are; 0 without a driver.
  static int count() {
    const Driver& made = shared();
    int found = 0;
    return made.library_ && !made.status_ && made.cuDeviceGetCount(&found) == 0 ? found : 0;
  }
  static std::string tell_missing() {
    const Driver& made = shared();
    if (!made.library_) return tell("no driver", {}).message;
    return made.status_ ? "CUDA: " + made.words(made.status_)
                        : "CUDA sees " + std::to_string(count()) + " devices here";
  }

  void check(int status) const {
    if (!status) return;
    const std::string told = words(status), text = "CUDA: " + told;
    const auto problem = [&](const char* code, const char* fix) { throw Error({{code, text, fix}}); };
    switch (status) {
      case 2: problem("no-device-memory", "give it fewer points at a time, or free memory of the GPU"); break;
      case 35:
      case 803: problem("old-driver", "install a newer driver of NVIDIA"); break;
      case 200:
      case 218:
      case 300:
      case 500: problem("broken-package", "compile it again"); break;
      case 209: problem("wrong-architecture", "compile with --cuda-arch and the architecture of this GPU"); break;
      case 221: problem("old-driver", "install all of NVIDIA's driver: its compiler of PTX is missing"); break;
      case 222:
        problem("old-driver",
                "install a newer driver of NVIDIA, or compile with --cuda-arch and this GPU's architecture");
        break;
      default: throw refuse("driver", {{"told", told}});
    }
  }

  int (*cuInit)(unsigned) = nullptr;
  int (*cuDeviceGetCount)(int*) = nullptr;
  int (*cuDeviceGet)(int*, int) = nullptr;
  int (*cuDeviceGetName)(char*, int, int) = nullptr;
  int (*cuDeviceGetAttribute)(int*, int, int) = nullptr;
  int (*cuDevicePrimaryCtxRetain)(void**, int) = nullptr;
  int (*cuCtxPushCurrent)(void*) = nullptr;
  int (*cuCtxPopCurrent)(void**) = nullptr;
  int (*cuModuleLoadData)(void**, const void*) = nullptr;
  int (*cuModuleUnload)(void*) = nullptr;
  int (*cuModuleGetFunction)(void**, void*, const char*) = nullptr;
  int (*cuFuncGetAttribute)(int*, int, void*) = nullptr;
  int (*cuLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                        void**) = nullptr;
  int (*cuMemAlloc)(Pointer*, size_t) = nullptr;
  int (*cuMemFree)(Pointer) = nullptr;
  int (*cuMemAllocAsync)(Pointer*, size_t, void*) = nullptr;
  int (*cuMemFreeAsync)(Pointer, void*) = nullptr;
  int (*cuMemcpyHtoDAsync)(Pointer, const void*, size_t, void*) = nullptr;
  int (*cuMemcpyDtoHAsync)(void*, Pointer, size_t, void*) = nullptr;
  int (*cuStreamSynchronize)(void*) = nullptr;
  int (*cuGetErrorString)(int, const char**) = nullptr;

 private:
  void* library_ = nullptr;
  int status_ = 0;

  static const Driver& shared() {
    static const Driver made;
    return made;
  }
  std::string words(int status) const {
    const char* told = nullptr;
    if (cuGetErrorString) cuGetErrorString(status, &told);
    return told ? told : "error " + std::to_string(status);
  }
  template <class Function> bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
  }
  Driver() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library_) return;
    const bool all =
        find(cuInit, "cuInit") && find(cuDeviceGetCount, "cuDeviceGetCount") && find(cuDeviceGet, "cuDeviceGet") &&
        find(cuDeviceGetName, "cuDeviceGetName") && find(cuDeviceGetAttribute, "cuDeviceGetAttribute") &&
        find(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain") && find(cuCtxPushCurrent, "cuCtxPushCurrent_v2") &&
        find(cuCtxPopCurrent, "cuCtxPopCurrent_v2") && find(cuModuleLoadData, "cuModuleLoadData") &&
        find(cuModuleUnload, "cuModuleUnload") && find(cuModuleGetFunction, "cuModuleGetFunction") &&
        find(cuFuncGetAttribute, "cuFuncGetAttribute") && find(cuLaunchKernel, "cuLaunchKernel") &&
        find(cuMemAlloc, "cuMemAlloc_v2") && find(cuMemFree, "cuMemFree_v2") &&
        find(cuMemAllocAsync, "cuMemAllocAsync") && find(cuMemFreeAsync, "cuMemFreeAsync") &&
        find(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2") && find(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2") &&
        find(cuStreamSynchronize, "cuStreamSynchronize") && find(cuGetErrorString, "cuGetErrorString");
    status_ = all ? cuInit(0) : 35;
  }
};

// A GPU and the context that torch works in, too.
class Gpu {
 public:
  explicit Gpu(const std::string& name) : driver_(Driver::require()) {
    const size_t colon = name.find(':');
    const std::string number = colon == std::string::npos ? "0" : name.substr(colon + 1);
    const bool read =
        !number.empty() && number.size() < 6 && number.find_first_not_of("0123456789") == std::string::npos;
    index_ = read ? std::atoi(number.c_str()) : -1;
    if (index_ < 0 || index_ >= Driver::count())
      throw refuse("no such device",
                   {{"name", name},
                    {"why", Driver::tell_missing()},
                    {"fix", "load its folder for the CPU, device='cpu', which --device cpu cuda writes"}});
    int device = 0;
    driver_.check(driver_.cuDeviceGet(&device, index_));
    driver_.check(driver_.cuDeviceGetAttribute(&major_, 75, device));
    driver_.check(driver_.cuDeviceGetAttribute(&minor_, 76, device));
    char text[256] = {};
    driver_.check(driver_.cuDeviceGetName(text, sizeof text - 1, device));
    model_ = text;
    driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device));
  }

  const Driver& driver() const { return driver_; }
  std::string name() const { return "cuda:" + std::to_string(index_); }
  int capability() const { return 10 * major_ + minor_; }
  const std::string& model() const { return model_; }

  // The context made current for a while: a thread that never called CUDA has none.
  class Entered {
   public:
    explicit Entered(const Gpu& gpu) : driver_(gpu.driver_) { driver_.check(driver_.cuCtxPushCurrent(gpu.context_)); }
    ~Entered() {
      void* popped = nullptr;
      driver_.cuCtxPopCurrent(&popped);
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    const Driver& driver_;
  };

 private:
  const Driver& driver_;
  int index_ = 0, major_ = 0, minor_ = 0;
  std::string model_;
  void* context_ = nullptr;
};

// What a GPU runs best of what a package holds: machine code of its major version, else PTX.
inline std::string choose_target(const std::vector<std::pair<std::string, std::string>>& held, int capability) {
  for (const auto& [kind, oldest] : {std::pair<std::string, int>{"sm_", capability / 10 * 10}, {"compute_", 0}}) {
    int best = -1;
    for (const auto& [name, file] : held) {
      if (name.rfind(kind, 0) != 0) continue;
      const int number = std::atoi(name.c_str() + kind.size());
      if (number >= oldest && number <= capability) best = std::max(best, number);
    }
    if (best >= 0) return kind + std::to_string(best);
  }
  return "";
}

class CudaBackend : public Backend {
 public:
  CudaBackend(const Metadata& meta, const std::map<std::string, std::string>& contents, const std::string& device,
              const std::function<void(const std::string&)>& log)
      : gpu_(std::make_shared<Gpu>(device)), wide_(meta.dtype == "float64" ? 8 : 4), adjoints_(meta.adjoints) {
    const std::string target = choose_target(meta.kernel->libraries, gpu_->capability()),
                      own = std::to_string(gpu_->capability());
    std::vector<std::string> held;
    std::string file;
    for (const auto& [name, each] : meta.kernel->libraries) {
      held.push_back(name);
      if (name == target) file = each;
    }
    if (target.empty())
      throw refuse("other architecture",
                   {{"held", join(held)}, {"device", gpu_->name()}, {"own", own}, {"name", gpu_->model()}});
    if (target.rfind("compute_", 0) == 0 && log)
      log(meta.name + ": the driver compiles " + target + ", this GPU is sm_" + own);
    const Gpu::Entered entered(*gpu_);
    const Driver& driver = gpu_->driver();
    void* module = nullptr;  // stays: the driver may end before what is static here
    driver.check(driver.cuModuleLoadData(&module, contents.at(file).c_str()));
    const auto open = [&](const char* entry) {
      Function made;
      driver.check(driver.cuModuleGetFunction(&made.handle, module, (meta.kernel->prefix + "_" + entry).c_str()));
      driver.check(driver.cuFuncGetAttribute(&made.threads, 0, made.handle));
      return made;
    };
    entries_[0] = open("forward");
    if (!meta.derivatives.empty()) entries_[1] = open("jacobian");
    if (meta.adjoints) entries_[2] = open("vjp");
  }

  std::string name() const override { return "kernel"; }
  std::string device() const override { return gpu_->name(); }
  bool has_adjoints() const override { return adjoints_; }

  Array allocate(DType dtype, Shape shape, size_t outermost) const override {
    const int64_t bytes = std::max<int64_t>(product(shape), 1) * size_of(dtype);
    const Gpu::Entered entered(*gpu_);
    const Driver& driver = gpu_->driver();
    Driver::Pointer place = 0;
    driver.check(driver.cuMemAlloc(&place, size_t(bytes)));
    const auto gpu = gpu_;
    std::shared_ptr<void> owner(reinterpret_cast<void*>(place), [gpu](void* p) {
      try {
        const Gpu::Entered inside(*gpu);
        gpu->driver().cuMemFree(reinterpret_cast<Driver::Pointer>(p));
      } catch (const Error&) {}
    });
    Shape strides = outermost_last(shape, outermost);
    Array made(owner.get(), dtype, std::move(shape), std::move(strides), true, device());
    made.keep(owner);
    return made;
  }

  Array to_device(const Array& x, void* stream) const override {
    if (x.device() != "cpu") return x;
    Array made = allocate(x.dtype(), x.shape(), 0);
    const int64_t wide = size_of(x.dtype());
    std::vector<char> bytes(size_t(x.size() * wide));
    x.each([&](int64_t at, int64_t place) {
      std::memcpy(bytes.data() + at * wide, static_cast<const char*>(x.address()) + place * wide, size_t(wide));
    });
    if (bytes.empty()) return made;
    const Gpu::Entered entered(*gpu_);
    const Driver& driver = gpu_->driver();
    driver.check(driver.cuMemcpyHtoDAsync(at(made.address()), bytes.data(), bytes.size(), stream));
    driver.check(driver.cuStreamSynchronize(stream));
    return made;
  }

  Array to_host(const Array& x, void* stream) const override {
    if (x.device() == "cpu" || x.size() == 0) return x.device() == "cpu" ? x : Array::empty(x.dtype(), x.shape());
    // the bytes from the first number to the last, then a view of them that is laid out the same
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < x.shape().size(); ++i)
      (x.strides()[i] < 0 ? low : high) += (x.shape()[i] - 1) * x.strides()[i];
    const int64_t wide = size_of(x.dtype());
    auto bytes = std::make_shared<std::vector<double>>(size_t(((high - low + 1) * wide + 7) / 8));
    const Gpu::Entered entered(*gpu_);
    const Driver& driver = gpu_->driver();
    driver.check(driver.cuMemcpyDtoHAsync(bytes->data(), at(x.address()) + Driver::Pointer(low * wide),
                                          size_t((high - low + 1) * wide), stream));
    driver.check(driver.cuStreamSynchronize(stream));
    Array made(reinterpret_cast<char*>(bytes->data()) - low * wide, x.dtype(), x.shape(), x.strides(), true, "cpu");
    made.keep(std::shared_ptr<void>(bytes, bytes->data()));
    return made;
  }

  void run(detail::Task& task) const override {
    bool together = false;
    for (const Rules& each : task.rules) together |= each.stop == stop_batch;
    const Gpu::Entered entered(*gpu_);
    const Driver& driver = gpu_->driver();
    const size_t solves = task.rules.size(), n = size_t(task.points * task.steps);
    const size_t each = (n * size_t(wide_ + 10) + 15) / 8 * 8;  // residual, iterations, pivoted, reason, accepted
    Driver::Pointer memory = 0;
    if (solves) driver.check(driver.cuMemAllocAsync(&memory, solves * each, task.stream));
    const auto reports = [&](int64_t step) {
      std::vector<Report> made;
      for (size_t s = 0; s < solves; ++s) {
        char* begin = reinterpret_cast<char*>(memory + s * each);
        const size_t done = size_t(step * task.points), counts = n * size_t(wide_);
        made.push_back({reinterpret_cast<int8_t*>(begin + counts + 8 * n + done),
                        reinterpret_cast<int32_t*>(begin + counts + 4 * done), begin + size_t(wide_) * done,
                        reinterpret_cast<int32_t*>(begin + counts + 4 * (n + done)),
                        reinterpret_cast<int8_t*>(begin + counts + 9 * n + done)});
      }
      return made;
    };
    if (!together) {
      launch(task, task.rules, reports(0), task.first, task.steps);
    } else {
      std::vector<int32_t> counts(size_t(task.points));
      for (int64_t k = 0; k < task.steps; ++k) {
        std::vector<Rules> rules = task.rules;
        const std::vector<Report> rows = reports(k);
        launch(task, rules, rows, task.first + k, 1);
        for (size_t s = 0; s < solves; ++s) {
          if (rules[s].stop != stop_batch) continue;
          driver.check(driver.cuMemcpyDtoHAsync(counts.data(), at(rows[s].iterations), counts.size() * 4, task.stream));
          driver.check(driver.cuStreamSynchronize(task.stream));
          rules[s].min_its = *std::max_element(counts.begin(), counts.end());
        }
        launch(task, rules, rows, task.first + k, 1);
      }
    }
    if (!task.reports.empty()) {
      const std::vector<Report> rows = reports(0);
      const auto fetch = [&](void* to, const void* from, size_t bytes) {
        driver.check(driver.cuMemcpyDtoHAsync(to, at(from), bytes, task.stream));
      };
      for (size_t s = 0; s < solves; ++s) {
        fetch(task.reports[s].reason, rows[s].reason, n), fetch(task.reports[s].iterations, rows[s].iterations, 4 * n);
        fetch(task.reports[s].residual, rows[s].residual, size_t(wide_) * n),
            fetch(task.reports[s].pivoted, rows[s].pivoted, 4 * n);
        fetch(task.reports[s].accepted, rows[s].accepted, n);
      }
      driver.check(driver.cuStreamSynchronize(task.stream));
    }
    if (memory) driver.check(driver.cuMemFreeAsync(memory, task.stream));
  }

 private:
  struct Function {
    void* handle = nullptr;
    int threads = 1;
  };
  static constexpr int64_t most_blocks = 1 << 20;
  static constexpr size_t most_bytes = 32764;

  static Driver::Pointer at(const void* p) { return reinterpret_cast<Driver::Pointer>(p); }

  void launch(const detail::Task& task, const std::vector<Rules>& rules, const std::vector<Report>& reports,
              int64_t first, int64_t steps) const {
    std::vector<char> bytes;
    const auto put = [&](const void* rows, size_t count, size_t size) {
      const size_t begin = bytes.size();
      bytes.resize(begin + std::max<size_t>(count, 1) * size);
      if (count) std::memcpy(bytes.data() + begin, rows, count * size);
    };
    put(task.given.data(), task.given.size(), sizeof(Given));
    put(task.gives.data(), task.gives.size(), sizeof(Gives));
    put(reports.data(), reports.size(), sizeof(Report));
    put(rules.data(), rules.size(), sizeof(Rules));
    const int64_t rest[3] = {task.points, first, steps};
    put(rest, 3, sizeof *rest);
    if (bytes.size() > most_bytes)
      throw Error(
          {{"task-too-large",
            "the kernel reads and gives too much for a GPU: " + std::to_string(bytes.size()) + " bytes of descriptions",
            "ask for fewer derivatives: at most " + std::to_string(most_bytes) + " bytes; or run it on a CPU"}});
    const Function& function = entries_[int(task.entry)];
    const int64_t blocks = std::min((task.points + function.threads - 1) / function.threads, most_blocks);
    void* arguments[] = {bytes.data()};
    const Driver& driver = gpu_->driver();
    driver.check(driver.cuLaunchKernel(function.handle, unsigned(blocks), 1, 1, unsigned(function.threads), 1, 1, 0,
                                       task.stream, arguments, nullptr));
  }

  std::shared_ptr<Gpu> gpu_;
  int64_t wide_;
  bool adjoints_;
  Function entries_[3];
};

}  // namespace detail
}  // namespace ingot
