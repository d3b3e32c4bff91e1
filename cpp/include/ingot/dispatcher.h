// Calls shared among devices, each of which has a copy of the model and a thread that feeds it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model.h"

namespace ingot {

class Dispatcher {
 public:
  enum Policy {
    round_robin,  // devices take turns
    by_load,      // who would be done first, by the time that points took so far
  };

  // A copy of the model on each device; a device may be named twice. chunk: the points of a call on one
  // device at most, by which `forward` cuts.
  Dispatcher(const std::string& place, const std::vector<std::string>& devices, Policy policy = by_load,
             int64_t chunk = 1 << 16, Options options = {})
      : policy_(policy), chunk_(std::max<int64_t>(chunk, 1)) {
    if (devices.empty()) throw detail::refuse("no devices", {});
    for (const std::string& device : devices) {
      options.device = device;
      workers_.push_back(std::make_unique<Worker>(Model::load(place, options)));
    }
    for (auto& each : workers_) each->thread = std::thread([worker = each.get()] { worker->serve(); });
  }
  ~Dispatcher() {
    for (auto& each : workers_) each->stop();
    for (auto& each : workers_) each->thread.join();
  }
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  size_t size() const { return workers_.size(); }
  Model& model(size_t which) { return workers_.at(which)->model; }
  int64_t points_done(size_t which) const {  // by one device since the beginning
    const std::lock_guard<std::mutex> held(lock_);
    return workers_.at(which)->done;
  }
  void set_parameter(const std::string& name, const Array& value) {
    for (auto& each : workers_) each->model.set_parameter(name, each->model.to_device(value));
  }

  // One call on one device, of arrays of the host that stay until it is done; results lie there too.
  std::future<Arrays> submit(Arrays inputs) {
    const int64_t points = count(inputs);
    Worker& worker = choose(points);
    auto task = std::make_shared<std::packaged_task<Arrays()>>([this, &worker, points, given = std::move(inputs)] {
      const auto begin = std::chrono::steady_clock::now();
      struct Release {  // whatever becomes of the call
        Dispatcher* all;
        Worker* worker;
        int64_t points;
        std::chrono::steady_clock::time_point begin;
        ~Release() {
          all->release(*worker, points,
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        }
      } release{this, &worker, points, begin};
      Arrays moved, made;
      for (const auto& [name, value] : given) moved[name] = worker.model.to_device(value);
      for (const auto& [name, value] : worker.model.forward(moved)) made[name] = worker.model.to_host(value);
      return made;
    });
    std::future<Arrays> result = task->get_future();
    worker.push([task] { (*task)(); });
    return result;
  }

  // All points of a call, cut along the first axis of the batch and shared among the devices.
  Arrays forward(const Arrays& inputs) {
    const Metadata& meta = workers_[0]->model.metadata();
    std::vector<Shape> batches;
    std::map<std::string, size_t> ranks;
    for (const Variable& v : meta.inputs) ranks[v.name] = v.shape().size();
    for (const auto& [name, value] : inputs)
      if (ranks.count(name) && value.shape().size() >= ranks[name])
        batches.push_back(detail::batch_of(value, ranks[name]));
    const Shape batch = detail::join_batches(batches);
    const int64_t rows = batch.empty() ? 0 : batch[0], points = detail::product(batch);
    if (batch.empty() || points <= chunk_ || inputs.size() != meta.inputs.size()) return submit(inputs).get();
    const int64_t step = std::max<int64_t>(1, chunk_ * rows / points);
    std::vector<std::pair<int64_t, std::future<Arrays>>> parts;
    for (int64_t begin = 0; begin < rows; begin += step) {
      const int64_t end = std::min(begin + step, rows);
      Arrays part;
      for (const auto& [name, value] : inputs)
        part[name] = cut(value, batch.size(), ranks.count(name) ? ranks[name] : 0, begin, end);
      parts.emplace_back(begin, submit(std::move(part)));
    }
    Arrays made;
    std::exception_ptr error;
    for (auto& [begin, part] : parts) {
      try {
        const Arrays found = part.get();
        if (error) continue;
        for (const Variable& y : meta.outputs) join(made[y.name], found.at(y.name), y, batch, begin);
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
    return made;
  }

 private:
  struct Worker {
    explicit Worker(Model loaded) : model(std::move(loaded)) {}

    void push(std::function<void()> work) {
      {
        const std::lock_guard<std::mutex> held(lock);
        queue.push_back(std::move(work));
      }
      ready.notify_one();
    }
    void stop() {
      {
        const std::lock_guard<std::mutex> held(lock);
        stopped = true;
      }
      ready.notify_one();
    }
    void serve() {
      while (true) {
        std::function<void()> work;
        {
          std::unique_lock<std::mutex> held(lock);
          ready.wait(held, [&] { return stopped || !queue.empty(); });
          if (queue.empty()) return;
          work = std::move(queue.front());
          queue.pop_front();
        }
        work();
      }
    }

    Model model;
    std::thread thread;
    std::mutex lock;
    std::condition_variable ready;
    std::deque<std::function<void()>> queue;
    bool stopped = false;
    int64_t waiting = 0, done = 0;  // points; held by the dispatcher's lock, as is what follows
    double seconds = 0;
  };

  Policy policy_;
  int64_t chunk_;
  mutable std::mutex lock_;
  size_t turn_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;

  Worker& choose(int64_t points) {
    const std::lock_guard<std::mutex> held(lock_);
    size_t best = turn_++ % workers_.size();
    if (policy_ == by_load) {
      const auto ends = [&](const Worker& w) {  // one that has done nothing yet is taken to be quick
        const double each = w.done ? w.seconds / double(w.done) : 0;
        return std::make_pair(each * double(w.waiting + points), w.waiting);
      };
      for (size_t i = 0; i < workers_.size(); ++i)
        if (ends(*workers_[i]) < ends(*workers_[best])) best = i;
    }
    workers_[best]->waiting += points;
    return *workers_[best];
  }
  void release(Worker& worker, int64_t points, double seconds) {
    const std::lock_guard<std::mutex> held(lock_);
    worker.waiting -= points, worker.done += points, worker.seconds += seconds;
  }

  int64_t count(const Arrays& inputs) const {
    int64_t most = 1;
    for (const auto& [name, value] : inputs)
      for (const Variable& v : workers_[0]->model.metadata().inputs)
        if (v.name == name && v.size > 0) most = std::max(most, value.size() / v.size);
    return most;
  }

  // The rows [begin, end) of the batch, of an array that has this axis; the array itself where it has not.
  static Array cut(const Array& x, size_t axes, size_t rest, int64_t begin, int64_t end) {
    if (x.shape().size() != axes + rest || x.shape()[0] == 1 || x.shape()[0] < end) return x;
    Shape shape = x.shape();
    shape[0] = end - begin;
    Array made(detail::shifted(x.address(), begin * x.strides()[0], size_of(x.dtype())), x.dtype(), std::move(shape),
               x.strides(), false, x.device());
    made.keep(x.owner());
    return made;
  }

  static void join(Array& whole, const Array& part, const Variable& y, const Shape& batch, int64_t begin) {
    if (!whole.address()) {
      Shape shape = batch;
      const Shape rest = y.shape();
      shape.insert(shape.end(), rest.begin(), rest.end());
      whole = Array::empty(part.dtype(), shape);
    }
    detail::by_dtype(part.dtype(), [&](auto real) {
      using T = decltype(real);
      const T* from = part.data<T>();
      T* to = whole.data<T>() + begin * whole.strides()[0];
      part.each([&](int64_t at, int64_t place) { to[at] = from[place]; });
    });
  }
};

}  // namespace ingot
