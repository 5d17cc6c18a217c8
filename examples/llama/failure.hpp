#pragma once

#include "engine/context.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace llama {

/// Another rank could not do its part, and says why itself.
class PeerFailed : public std::runtime_error, public sifr::Error {
 public:
  using std::runtime_error::runtime_error;
  [[nodiscard]] const char* message() const noexcept override { return what(); }
};

/// Collective: runs `action` on every rank. Where it throws, that rank throws the same and the
/// others PeerFailed, which names `what`, so that none waits for another.
void on_all(sifr::Context& context, const std::string& what, const std::function<void()>& action);

/// The same for an action of rank 0 alone.
void on_root(sifr::Context& context, const std::string& what, const std::function<void()>& action);

}  // namespace llama
