#include "examples/llama/failure.hpp"

#include <exception>

namespace llama {

void on_root(sifr::Context& context, const std::string& what, const std::function<void()>& action) {
  std::exception_ptr failure;
  if (context.rank() == 0) {
    try {
      action();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  const bool has_failed = context.sum(failure ? 1 : 0) > 0;
  if (failure) std::rethrow_exception(failure);
  if (has_failed) throw RootFailed(what + ": rank 0 failed");
}

}  // namespace llama
