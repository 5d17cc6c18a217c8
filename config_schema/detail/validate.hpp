#pragma once

#include "config_schema/detail/object_reader.hpp"

namespace sifr::detail {

/// What no single key can say: keys that need or exclude one another, and values that are computed
/// from others. Runs after the sections were read.
void validate(Reading& reading);

}  // namespace sifr::detail
