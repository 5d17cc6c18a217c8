#include "device/detail/available_memory.hpp"

#include "device/memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace sifr {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

/// The number that a file holds, if it holds one ("max" is none).
std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// The number after `key` in a file of lines "key number …".
std::optional<std::int64_t> number_of(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string found;
  std::int64_t number = 0;
  while (file >> found >> number) {
    if (found == key) return number;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

std::int64_t of_machine(const fs::path& root) {
  const std::optional<std::int64_t> kibibytes = number_of(root / "proc/meminfo", "MemAvailable:");
  return kibibytes ? *kibibytes * 1024 : kUnknown;
}

/// A memory controller: where it is mounted, its files, and the keys of memory.stat for cached
/// files, which the system gives up when memory is short.
struct Controller {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* inactive_files;
  const char* active_files;
};
constexpr Controller kVersion1 = {"sys/fs/cgroup/memory",
                                  "memory.limit_in_bytes",
                                  "memory.usage_in_bytes",
                                  "total_inactive_file",
                                  "total_active_file"};
constexpr Controller kVersion2 = {
    "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "active_file"};

std::int64_t left_in_group(const fs::path& group, const Controller& controller) {
  const std::optional<std::int64_t> limit = number_in(group / controller.limit);
  const std::optional<std::int64_t> usage = number_in(group / controller.usage);
  if (!limit || !usage) return kUnknown;
  const std::int64_t cached =
      number_of(group / "memory.stat", controller.inactive_files).value_or(0) +
      number_of(group / "memory.stat", controller.active_files).value_or(0);
  return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *usage - cached));
}

/// The least that is left in the group and those above it. A container may see its own group as the
/// mount itself.
std::int64_t left_in_groups(const fs::path& root, const Controller& controller, fs::path group) {
  std::int64_t left = kUnknown;
  while (true) {
    left = std::min(left, left_in_group(root / controller.mount / group, controller));
    if (group.empty()) return left;
    group = group.parent_path();
  }
}

/// Lines are "number:controllers:/group"; version 2 names no controllers.
std::int64_t of_groups(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  std::int64_t left = kUnknown;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(":/", first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 2);
    if (controllers == ",,") left = std::min(left, left_in_groups(root, kVersion2, group));
    if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_in_groups(root, kVersion1, group));
    }
  }
  return left;
}

}  // namespace

namespace detail {

std::int64_t available_bytes_under(const fs::path& root) {
  return std::min(of_machine(root), of_groups(root));
}

}  // namespace detail

std::int64_t available_bytes() {
  return detail::available_bytes_under("/");
}

}  // namespace sifr
