#pragma once

#include "examples/llama/options.hpp"

namespace llama {

/// Looks, before anything is opened, whether what the options have written would overwrite what
/// they have read, or one result another: by the same path, a link, or a folder that is replaced as
/// a whole. Throws sifr::UsageError that names both options.
void require_separate_outputs(const Options& options);

}  // namespace llama
