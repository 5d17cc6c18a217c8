#include "device/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
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

// "refused: 12.00 MiB for weights, limit 100.00 MiB", with a sum where it is several purposes.
void append_refused(std::string& text, const MemoryTable& table, Tier tier) {
  std::size_t count = 0;
  for (const MemoryTable::Row& row : table.rows[static_cast<std::size_t>(tier)])
    count += row.refused > 0 ? 1 : 0;
  const auto limit = table.limit(tier);
  const std::string bound = limit ? fmt::format(", limit {}", mib(*limit)) : "";
  for (std::size_t i = 0; i < kPurposeCount; ++i) {
    const auto purpose = static_cast<Purpose>(i);
    const std::int64_t refused = table.row(tier, purpose).refused;
    if (refused == 0) continue;
    text += fmt::format(
        "\nrefused: {} for {}{}", mib(refused), name_of(purpose), count == 1 ? bound : "");
  }
  if (count > 1)
    text += fmt::format("\nrefused: {} in all{}", mib(table.total(tier).refused), bound);
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
  // Charged memory need not be resident: less than nothing is not unaccounted.
  const std::int64_t beyond = std::max<std::int64_t>(0, resident_bytes() - accounted);
  text += fmt::format(
      "{:<7} {:<12} {:>12.2f}", "process", "unaccounted", static_cast<double>(beyond) / kMiB);
  append_refused(text, *this, Tier::kDevice);
  append_refused(text, *this, Tier::kHost);
  return text;
}

MemoryTable MemoryTable::with_refused(Tier tier, Purpose purpose, std::int64_t bytes) const {
  MemoryTable table = *this;
  table.rows[static_cast<std::size_t>(tier)][static_cast<std::size_t>(purpose)].refused += bytes;
  table.totals[static_cast<std::size_t>(tier)].refused += bytes;
  return table;
}

std::string mib(std::int64_t bytes) {
  constexpr std::int64_t kPart = 1 << 20;
  const std::int64_t hundredths = (bytes % kPart * 100 + kPart - 1) / kPart;
  return fmt::format("{}.{:02} MiB", bytes / kPart + hundredths / 100, hundredths % 100);
}

}  // namespace sifr
