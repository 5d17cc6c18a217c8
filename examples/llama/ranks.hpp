#pragma once

#include "engine/context.hpp"

#include <functional>

namespace llama {

/// Runs `body` once for each rank of this process: on `threads` threads, or, with 0, on the calling
/// thread as the rank that the environment names; `options` are those of each rank's context. The
/// first exception of any rank ends the group and is thrown here.
void run_ranks(int threads,
               const std::function<void(sifr::Context&)>& body,
               const sifr::ContextOptions& options = {});

}  // namespace llama
