#include "examples/llama/failure.hpp"

#include <exception>

namespace llama {

void on_all(sifr::Context& context, const std::string& what, const std::function<void()>& action) {
  std::exception_ptr failure;
  try {
    action();
  } catch (...) {
    failure = std::current_exception();
  }
  const bool has_failed = context.sum(failure ? 1 : 0) > 0;
  if (failure) std::rethrow_exception(failure);
  if (has_failed) throw PeerFailed(what + ": another rank failed");
}

void on_root(sifr::Context& context, const std::string& what, const std::function<void()>& action) {
  on_all(context, what, [&] {
    if (context.rank() == 0) action();
  });
}

}  // namespace llama
