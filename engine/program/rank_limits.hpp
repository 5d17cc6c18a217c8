#pragma once

#include <stdexcept>
#include <system_error>

namespace sifr::program {

/// Throws std::runtime_error if this process may not open enough files for `ranks` ranks.
void check_limits(int ranks);

/// The same error; if a limit of this process or user is why, one that names it.
[[nodiscard]] std::runtime_error explained(const std::system_error& error, int ranks);

}  // namespace sifr::program
