#pragma once

#include "tests/matrix/training.hpp"

#include <string>

namespace sifr::test {

/// Carries out the training that the text tells (see parse_training), its ranks as threads of this
/// process or as processes of `matrix_rank`. Throws unless all ranks end well and agree.
[[nodiscard]] Figures carry_out(const std::string& text);

}  // namespace sifr::test
