#pragma once

#include "comm/communicator.hpp"
#include "zero/layout.hpp"

#include <string>

namespace sifr::detail {

/// Collective, where fingerprints differ: in what rank `other` declares the model otherwise than
/// rank 0, first of all, as the end of a sentence.
[[nodiscard]] std::string first_difference(const Layout& layout,
                                           Communicator& communicator,
                                           int other);

}  // namespace sifr::detail
