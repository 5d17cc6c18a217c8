#pragma once

#include "engine/context.hpp"

#include <functional>

namespace bench {

/// Whether a launcher (`sifr run`, torchrun, …) has started this process as one of several ranks.
[[nodiscard]] bool is_launched();

/// Calls `work` for every rank, at the same time: as the launcher's rank, or, where none has
/// started this process, on `ranks` threads of it. `threads` of each rank's kernels: 0: cores /
/// ranks. Throws what the first of the ranks threw.
void run_ranks(int ranks, int threads, const std::function<void(sifr::Context&)>& work);

}  // namespace bench
