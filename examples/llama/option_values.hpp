#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace llama {

/// Options whose values are read whole and strictly: a number in decimal digits within its range, a
/// path that is not empty. Anything else ends the parsing with a text that names the option, what
/// was given and what is allowed.
class StrictOptions {
 public:
  explicit StrictOptions(CLI::App& app) : app_(app) {}

  CLI::Option* path(const std::string& name, std::filesystem::path& value, std::string about);
  CLI::Option* text(const std::string& name, std::string& value, std::string about);
  CLI::Option* count(const std::string& name,
                     std::int64_t& value,
                     std::int64_t least,
                     std::string about);
  /// From 1 to 1024.
  CLI::Option* threads(const std::string& name, int& value, std::string about);
  CLI::Option* seed(const std::string& name,
                    std::optional<std::uint64_t>& value,
                    std::string about);
  /// Bytes, or with KiB, MiB or GiB behind the number; at least 1.
  CLI::Option* size(const std::string& name, std::optional<std::int64_t>& value, std::string about);
  /// Finite and not negative.
  CLI::Option* amount(const std::string& name, double& value, std::string about);
  /// Whole numbers with commas between them.
  CLI::Option* tokens(const std::string& name, std::vector<std::int32_t>& value, std::string about);

 private:
  /// `read` says whether the text is `allowed`.
  CLI::Option* add(const std::string& name,
                   std::string type,
                   std::string allowed,
                   std::function<bool(std::string_view)> read,
                   std::string about);

  CLI::App& app_;
};

/// What to say of arguments that no option takes; empty if there is none.
[[nodiscard]] std::string unexpected_arguments(const CLI::App& app);

}  // namespace llama
