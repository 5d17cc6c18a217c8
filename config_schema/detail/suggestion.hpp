#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sifr::detail {

/// The key that an unknown `key` of the section `parent` (a JSON pointer, empty at the top) was
/// probably meant to be: its name if it is one of the section's `candidates`, the whole pointer if
/// it is another section's; empty if none is near.
[[nodiscard]] std::string suggest_key(std::string_view key,
                                      const std::string& parent,
                                      const std::vector<std::string_view>& candidates);

}  // namespace sifr::detail
