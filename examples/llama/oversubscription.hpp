#pragma once

#include "engine/context.hpp"

#include <string>

namespace llama {

/// A line of warning where the ranks' threads are more than the cores and may therefore wait for
/// each other; else nothing. Ranks of one thread each take turns without harm.
[[nodiscard]] std::string oversubscription(const sifr::Context& context, int threads);

}  // namespace llama
