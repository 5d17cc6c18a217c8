#pragma once

#include "config_schema/detail/json_tree.hpp"

#include <string>
#include <vector>

namespace sifr::detail {

/// Writes old spellings as today's: `bfloat16`, `cpu_offload`, `"zero_optimization": true`, the
/// bare names that DeepSpeed takes for `stage3_…`, and others. Each outdated one is a notice; an
/// old and a new spelling side by side go to `problems`.
void modernize(JsonNode& root, Problems& problems, std::vector<std::string>& notices);

}  // namespace sifr::detail
