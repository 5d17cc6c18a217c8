#include "examples/llama/ranks.hpp"

#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace llama {
namespace {

/// The exception of the rank that failed first; the others' only follow from it.
class FirstFailure {
 public:
  void note(const std::exception_ptr& failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = failure;
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
};

void run_one(sifr::Context& context,
             const std::function<void(sifr::Context&)>& body,
             FirstFailure& failure) {
  try {
    body(context);
  } catch (const std::exception& error) {
    failure.note(std::current_exception());
    context.communicator().abort(error.what());
  }
}

}  // namespace

void run_ranks(int threads, const std::function<void(sifr::Context&)>& body) {
  FirstFailure failure;
  if (threads == 0) {
    sifr::Context context = sifr::Context::from_environment();
    run_one(context, body, failure);
    failure.rethrow();
    return;
  }
  std::vector<sifr::Context> contexts = sifr::Context::threads(threads);
  std::vector<std::thread> ranks;
  for (sifr::Context& context : contexts)
    ranks.emplace_back([&] { run_one(context, body, failure); });
  for (std::thread& rank : ranks)
    rank.join();
  failure.rethrow();
}

}  // namespace llama
