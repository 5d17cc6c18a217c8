#pragma once

#include <cstdint>
#include <filesystem>

namespace sifr::detail {

/// sifr::available_bytes of the machine whose /proc and /sys lie under `root`.
[[nodiscard]] std::int64_t available_bytes_under(const std::filesystem::path& root);

}  // namespace sifr::detail
