#pragma once

#include "../sifr_error.hpp"

#include <vector>

namespace sifr {

/// The numbers of the cores on which a process may run (0: this one), lowest first; none if the
/// system does not tell.
[[nodiscard]] SIFR_API std::vector<int> usable_cores(int process = 0);

}  // namespace sifr
