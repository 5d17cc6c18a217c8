#pragma once

#include "comm/communicator.hpp"
#include "config_schema/config.hpp"
#include "zero/layout.hpp"

#include <span>
#include <string>
#include <vector>

namespace sifr::detail {

/// All that a model's fingerprint covers, a fact each: "unit 'a' has 2 parameters".
[[nodiscard]] std::vector<std::string> facts_of(const Layout& layout);

/// The effective configuration, a key each: "/optimizer/params/lr: 0.001".
[[nodiscard]] std::vector<std::string> facts_of(const Config& config);

/// Collective, where fingerprints differ: the first fact in which rank `other` differs from rank 0,
/// as the end of a sentence.
[[nodiscard]] std::string first_difference(std::span<const std::string> facts,
                                           Communicator& communicator,
                                           int other);

}  // namespace sifr::detail
