#include "device/memory.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <unistd.h>

namespace sifr {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

void append_row(std::string& text,
                std::string_view tier,
                std::string_view purpose,
                const MemoryTable::Row& row) {
  fmt::format_to(std::back_inserter(text),
                 "{:<7} {:<12} {:>12.2f} {:>12.2f}\n",
                 tier,
                 purpose,
                 static_cast<double>(row.now) / kMiB,
                 static_cast<double>(row.peak) / kMiB);
}

void append_tier(std::string& text, const MemoryTable& table, Tier tier) {
  if (table.total(tier).peak == 0) return;
  for (std::size_t i = 0; i < kPurposeCount; ++i) {
    const auto purpose = static_cast<Purpose>(i);
    const MemoryTable::Row& row = table.row(tier, purpose);
    if (row.peak > 0) append_row(text, name_of(tier), name_of(purpose), row);
  }
  append_row(text, name_of(tier), "total", table.total(tier));
}

}  // namespace

std::string_view name_of(Purpose purpose) noexcept {
  constexpr std::array<std::string_view, kPurposeCount> kNames = {
      "weights", "gradients", "optimizer", "window", "bucket", "activation", "staging"};
  return kNames[static_cast<std::size_t>(purpose)];
}

std::string_view name_of(Tier tier) noexcept {
  return tier == Tier::kDevice ? "device" : "host";
}

std::int64_t resident_bytes() noexcept {
  try {
    std::ifstream file("/proc/self/statm");
    std::int64_t pages = 0;
    std::int64_t resident_pages = 0;
    file >> pages >> resident_pages;
    return resident_pages * sysconf(_SC_PAGESIZE);
  } catch (...) {  // no memory for the stream's buffer
    return 0;
  }
}

std::string MemoryTable::to_string() const {
  std::string text =
      fmt::format("{:<7} {:<12} {:>12} {:>12}\n", "tier", "purpose", "now MiB", "peak MiB");
  append_tier(text, *this, Tier::kDevice);
  append_tier(text, *this, Tier::kHost);
  const std::int64_t accounted = total(Tier::kDevice).now + total(Tier::kHost).now;
  const auto beyond = static_cast<double>(resident_bytes() - accounted);
  return text + fmt::format("{:<7} {:<12} {:>12.2f}", "process", "unaccounted", beyond / kMiB);
}

}  // namespace sifr
