#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace sifr::detail {

/// The first `most` bytes of a config file. Throws ConfigError for what is not a regular file: each
/// rank reads the config, so a pipe would give it to one of them, and one without a writer would
/// be waited for.
[[nodiscard]] std::string read_config_file(const std::filesystem::path& path, std::size_t most);

}  // namespace sifr::detail
