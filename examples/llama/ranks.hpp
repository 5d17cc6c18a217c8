#pragma once

#include "comm/launch_environment.hpp"
#include "engine/context.hpp"

#include <functional>

namespace llama {

/// Throws sifr::UsageError where ranks are asked for as threads of processes that a launcher
/// started as the ranks of one group: each process would be a training of its own.
void require_one_kind_of_ranks(int threads, const sifr::LaunchEnvironment& environment);

/// Runs `body` once for each rank of this process: on `threads` threads, or, with 0, on the calling
/// thread as the rank that the environment names; `options` are those of each rank's context. The
/// first exception of any rank ends the group and is thrown here.
void run_ranks(int threads,
               const std::function<void(sifr::Context&)>& body,
               const sifr::ContextOptions& options = {});

}  // namespace llama
