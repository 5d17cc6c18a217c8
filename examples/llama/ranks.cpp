#include "examples/llama/ranks.hpp"

#include "examples/llama/failure.hpp"

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
  void note(const std::exception_ptr& failure, bool is_consequence) {
    const std::lock_guard lock(mutex_);
    if (failure_ && (is_consequence || !is_consequence_)) return;
    failure_ = failure;
    is_consequence_ = is_consequence;
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
  bool is_consequence_ = false;
};

void run_one(sifr::Context& context,
             const std::function<void(sifr::Context&)>& body,
             FirstFailure& failure) {
  try {
    body(context);
  } catch (const RootFailed&) {
    failure.note(std::current_exception(), true);
  } catch (const std::exception& error) {
    failure.note(std::current_exception(), false);
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
  ranks.reserve(contexts.size());
  for (sifr::Context& context : contexts)
    ranks.emplace_back([&] { run_one(context, body, failure); });
  for (std::thread& rank : ranks)
    rank.join();
  failure.rethrow();
}

}  // namespace llama
