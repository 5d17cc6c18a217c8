#include "examples/llama/oversubscription.hpp"

#include <fmt/format.h>

#include <cmath>

namespace llama {

std::string oversubscription(const sifr::Context& context, int threads) {
  if (threads == 1 || threads <= context.cores()) return "";
  return fmt::format(
      "{} ranks x {} threads on {} cores: they wait for each other, and where waiting threads spin "
      "(OMP_WAIT_POLICY=PASSIVE forbids it) a step can take 50 times as long; take fewer",
      context.size(),
      threads,
      std::lround(context.cores() * context.size()));
}

}  // namespace llama
