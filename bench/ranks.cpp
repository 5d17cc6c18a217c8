#include "bench/ranks.hpp"

#include "comm/launch_environment.hpp"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {

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
  std::exception_ptr failure;
  std::once_flag is_failed;
  std::vector<std::thread> running;
  running.reserve(contexts.size());
  for (std::size_t r = 0; r < contexts.size(); ++r) {
    running.emplace_back([&, r] {
      try {
        work(contexts[r]);
      } catch (...) {
        std::call_once(is_failed, [&] {
          failure = std::current_exception();
          contexts[r].communicator().abort("another rank failed");
        });
      }
    });
  }
  for (std::thread& thread : running)
    thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace bench
