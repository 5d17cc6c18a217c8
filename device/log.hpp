#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace sifr {

enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };

/// Where notices go: called with whole texts, without line end; several threads may call at once.
/// Empty: notices of kWarning and above go to stderr, those of kInfo to stdout, on rank 0 only.
using Log = std::function<void(Level level, std::string_view text)>;

}  // namespace sifr
