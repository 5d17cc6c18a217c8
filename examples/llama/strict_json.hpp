#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string_view>

namespace llama {

/// JSON whose keys keep their order. Throws sifr::IoError: no JSON, a key twice in one object, or
/// nesting without end.
[[nodiscard]] nlohmann::ordered_json parse_strict_json(std::string_view json,
                                                       const std::filesystem::path& path);

}  // namespace llama
