#pragma once

#include "engine/context.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace llama {

/// Rank 0 could not do its part of `what`, and says why itself.
class RootFailed : public std::runtime_error, public sifr::Error {
 public:
  using std::runtime_error::runtime_error;
  [[nodiscard]] const char* message() const noexcept override { return what(); }
};

/// Collective: runs `action` on rank 0. Where it throws, rank 0 throws the same and the others
/// RootFailed, so that none waits for another.
void on_root(sifr::Context& context, const std::string& what, const std::function<void()>& action);

}  // namespace llama
