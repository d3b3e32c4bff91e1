// Threads that share the ranges of a call; one pool for the whole program, started when first needed.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ingot {
namespace detail {

class Pool {
 public:
  static Pool& shared() {
    static Pool pool;
    return pool;
  }

  // Calls `work(i)` for every i below count, by so many threads at most, of which the caller is one.
  // What it throws first is thrown here, after all have ended.
  void run(int64_t count, int threads, const std::function<void(int64_t)>& work) {
    if (threads <= 1 || count <= 1) {
      for (int64_t i = 0; i < count; ++i) work(i);
      return;
    }
    auto job = std::make_shared<Job>();
    job->count = count, job->work = &work;
    {
      const std::lock_guard<std::mutex> held(lock_);
      const int more = int(std::min<int64_t>(threads, count)) - 1;
      while (int(workers_.size()) < more && workers_.size() < 1024) workers_.emplace_back([this] { serve(); });
      for (int i = 0; i < more; ++i) jobs_.push_back(job);
    }
    ready_.notify_all();
    job->run();
    std::unique_lock<std::mutex> held(job->lock);
    job->idle.wait(held, [&] { return job->busy == 0; });
    job->closed = true;  // who comes later finds nothing to do
    if (job->error) std::rethrow_exception(job->error);
  }

 private:
  struct Job {
    int64_t count = 0;
    const std::function<void(int64_t)>* work = nullptr;
    std::atomic<int64_t> next{0};
    std::mutex lock;
    std::condition_variable idle;
    int busy = 0;
    bool closed = false;
    std::exception_ptr error;

    void run() {
      {
        const std::lock_guard<std::mutex> held(lock);
        if (closed) return;
        ++busy;
      }
      std::exception_ptr wrong;
      try {
        for (int64_t i; (i = next.fetch_add(1)) < count;) (*work)(i);
      } catch (...) {
        wrong = std::current_exception();
        next.store(count);
      }
      const std::lock_guard<std::mutex> held(lock);
      if (wrong && !error) error = wrong;
      if (--busy == 0) idle.notify_all();
    }
  };

  void serve() {
    while (true) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> held(lock_);
        ready_.wait(held, [&] { return stopped_ || !jobs_.empty(); });
        if (stopped_) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job->run();
    }
  }

  ~Pool() {
    {
      const std::lock_guard<std::mutex> held(lock_);
      stopped_ = true;
    }
    ready_.notify_all();
    for (std::thread& each : workers_) each.join();
  }

  std::mutex lock_;
  std::condition_variable ready_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::vector<std::thread> workers_;
  bool stopped_ = false;
};

// As many threads as OMP_NUM_THREADS says, or as there are cores.
inline int default_threads() {
  static const int found = [] {
    const char* said = std::getenv("OMP_NUM_THREADS");
    const int number = said ? std::atoi(said) : 0;
    return number > 0 ? number : std::max(1, int(std::thread::hardware_concurrency()));
  }();
  return found;
}

}  // namespace detail
}  // namespace ingot
