#include "examples/llama/ranks.hpp"

#include "examples/llama/failure.hpp"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <stdexcept>
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
  } catch (const PeerFailed&) {
    failure.note(std::current_exception(), true);
  } catch (const std::exception& error) {
    failure.note(std::current_exception(), false);
    context.communicator().abort(error.what());
  }
}

std::vector<sifr::Context> contexts_of(int threads, const sifr::ContextOptions& options) {
  try {
    return sifr::Context::threads(threads, options);
  } catch (const sifr::DeviceError& error) {  // their workers are threads too
    throw std::runtime_error(
        fmt::format("--threads-as-ranks: {} ranks cannot be started: {}", threads, error.what()));
  }
}

void run_on_threads(std::vector<sifr::Context>& contexts,
                    const std::function<void(sifr::Context&)>& body,
                    FirstFailure& failure) {
  std::vector<std::jthread> ranks;  // joined at their end, however that comes
  ranks.reserve(contexts.size());
  for (sifr::Context& context : contexts) {
    try {
      ranks.emplace_back([&] { run_one(context, body, failure); });
    } catch (const std::exception& error) {  // the system has no thread, or no memory for one
      const std::string text =
          fmt::format("--threads-as-ranks: rank {} of {} cannot be started: {}",
                      context.rank(),
                      contexts.size(),
                      error.what());
      failure.note(std::make_exception_ptr(std::runtime_error(text)), false);
      context.communicator().abort(text);  // those that run wait for it
      return;
    }
  }
}

}  // namespace

void require_one_kind_of_ranks(int threads, const sifr::LaunchEnvironment& environment) {
  if (threads == 0 || environment.size == 1) return;
  throw sifr::UsageError(
      fmt::format("these ranks are started by a launcher ({}, world size {}); leave out "
                  "--threads-as-ranks or the launcher",
                  environment.launcher,
                  environment.size));
}

void run_ranks(int threads,
               const std::function<void(sifr::Context&)>& body,
               const sifr::ContextOptions& options) {
  FirstFailure failure;
  if (threads == 0) {
    sifr::Context context = sifr::Context::from_environment(options);
    run_one(context, body, failure);
  } else {
    std::vector<sifr::Context> contexts = contexts_of(threads, options);
    run_on_threads(contexts, body, failure);
  }
  failure.rethrow();
}

}  // namespace llama
