#include "bench/ranks.hpp"

#include "comm/launch_environment.hpp"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {
namespace {

/// What the first of the ranks threw; the others, which wait for it, are told.
class FirstFailure {
 public:
  /// Runs `action` of this rank.
  template <class Action>
  bool guard(sifr::Context& context, const Action& action) {
    try {
      action();
      return true;
    } catch (...) {
      std::call_once(is_failed_, [&] {
        failure_ = std::current_exception();
        context.communicator().abort("another rank failed");
      });
      return false;
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::once_flag is_failed_;
  std::exception_ptr failure_;
};

}  // namespace

bool is_launched() {
  return sifr::LaunchEnvironment::from_environment().size > 1;
}

void run_ranks(int ranks, int threads, const std::function<void(sifr::Context&)>& work) {
  const sifr::ContextOptions quiet{.log = [](sifr::Level, std::string_view) {}, .threads = threads};
  if (is_launched()) {
    auto context = sifr::Context::from_environment(quiet);
    return work(context);
  }
  auto contexts = sifr::Context::threads(ranks, quiet);
  FirstFailure failure;
  std::vector<std::jthread> running;  // joined at their end, however that comes
  running.reserve(contexts.size());
  for (sifr::Context& context : contexts) {
    const auto run = [&] { failure.guard(context, [&] { work(context); }); };
    // A thread that cannot start is a rank that failed.
    if (!failure.guard(context, [&] { running.emplace_back(run); })) break;
  }
  running.clear();
  failure.rethrow();
}

}  // namespace bench
