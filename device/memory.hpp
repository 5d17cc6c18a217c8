#pragma once

#include "../sifr_error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sifr {

/// What an allocation is for. Every byte on a device or in host memory that the engine holds has
/// one.
enum class Purpose : std::uint8_t {
  kWeights,
  kGradients,
  kOptimizer,
  kWindow,
  kBucket,
  kActivation,
  kStaging
};
inline constexpr std::size_t kPurposeCount = 7;
[[nodiscard]] SIFR_API std::string_view name_of(Purpose purpose) noexcept;

/// Where bytes rest. On the host backend "device" is the memory that plays the accelerator's part.
enum class Tier : std::uint8_t { kDevice, kHost };
inline constexpr std::size_t kTierCount = 2;
[[nodiscard]] SIFR_API std::string_view name_of(Tier tier) noexcept;

/// Upper bounds in bytes; unset means unbounded.
struct Limits {
  std::optional<std::int64_t> device = {};
  std::optional<std::int64_t> host = {};
};

/// A snapshot of one account: bytes now and at their peak, by tier and purpose. Equal sums by
/// construction: `total(tier)` is the sum of the rows' `now`; `peak(tier)` is the peak of that sum,
/// not the sum of peaks.
struct SIFR_API MemoryTable {
  struct Row {
    std::int64_t now = 0;
    std::int64_t peak = 0;
    std::int64_t refused = 0;  ///< in an OutOfMemory's table: what was asked for and not given
  };
  std::array<std::array<Row, kPurposeCount>, kTierCount> rows = {};
  std::array<Row, kTierCount> totals = {};
  Limits limits = {};

  [[nodiscard]] const Row& row(Tier tier, Purpose purpose) const noexcept {
    return rows[static_cast<std::size_t>(tier)][static_cast<std::size_t>(purpose)];
  }
  [[nodiscard]] const Row& total(Tier tier) const noexcept {
    return totals[static_cast<std::size_t>(tier)];
  }
  [[nodiscard]] std::optional<std::int64_t> limit(Tier tier) const noexcept {
    return tier == Tier::kDevice ? limits.device : limits.host;
  }
  /// This table, with `bytes` more that were refused.
  [[nodiscard]] MemoryTable with_refused(Tier tier, Purpose purpose, std::int64_t bytes) const;
  /// Several lines for people: a row a purpose that ever held bytes, in MiB, a row *unaccounted*:
  /// what the process really holds (resident set) beyond the table, and a line for what was
  /// refused.
  [[nodiscard]] std::string to_string() const;
};

/// "12.34 MiB", rounded up: nothing that takes room shows as none.
[[nodiscard]] SIFR_API std::string mib(std::int64_t bytes);

/// Bytes of the process that are in memory now (its resident set); 0 where the system does not
/// tell.
[[nodiscard]] SIFR_API std::int64_t resident_bytes() noexcept;

/// Bytes that the system can still give without killing a process: the machine's available memory,
/// or what the process's cgroups leave of it; the largest value where the system does not tell.
[[nodiscard]] SIFR_API std::int64_t available_bytes();

/// More bytes were asked for than the limit or the machine has. Lower the size, raise the limit, or
/// shard more; the text names the purpose, both numbers and the table.
class SIFR_API OutOfMemory : public std::runtime_error, public Error {
 public:
  OutOfMemory(const std::string& text, const MemoryTable& table);
  [[nodiscard]] const char* message() const noexcept override { return what(); }
  [[nodiscard]] const MemoryTable& table() const noexcept { return table_; }

 private:
  MemoryTable table_;
};

class MemoryAccount;

/// Bytes noted in an account for as long as this lives. Move-only; outlives nothing: the account is
/// kept alive.
class SIFR_API Charge {
 public:
  Charge() = default;
  Charge(Charge&& other) noexcept;
  Charge& operator=(Charge&& other) noexcept;
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge();
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  friend class MemoryAccount;
  Charge(std::shared_ptr<MemoryAccount> account,
         Tier tier,
         Purpose purpose,
         std::int64_t bytes) noexcept;
  std::shared_ptr<MemoryAccount> account_;
  Tier tier_ = Tier::kDevice;
  Purpose purpose_ = Purpose::kWeights;
  std::int64_t bytes_ = 0;
};

/// Who holds how many bytes of one rank, and how many it may hold. Thread-safe.
class SIFR_API MemoryAccount : public std::enable_shared_from_this<MemoryAccount> {
 public:
  /// Throws UsageError for a negative limit.
  [[nodiscard]] static std::shared_ptr<MemoryAccount> make(const Limits& limits);
  ~MemoryAccount();
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  /// Notes `bytes` (≥ 0) until the Charge ends. Throws OutOfMemory, and notes nothing, beyond the
  /// limit.
  [[nodiscard]] Charge charge(std::int64_t bytes, Purpose purpose, Tier tier = Tier::kDevice);
  /// Throws what charge() would throw, and notes nothing.
  void require_room(std::int64_t bytes, Purpose purpose, Tier tier = Tier::kDevice) const;
  /// Throws OutOfMemory if the system cannot give `bytes` more: taking them would have it kill this
  /// process, or another.
  void require_available(std::int64_t bytes, Purpose purpose) const;
  [[nodiscard]] MemoryTable table() const;

 private:
  friend class Charge;
  explicit MemoryAccount(const Limits& limits);
  void release(Tier tier, Purpose purpose, std::int64_t bytes) noexcept;
  struct State;
  std::unique_ptr<State> state_;
};

/// Memory with one owner, charged to an account. Page-aligned, zeroed, and resident (prefaulted)
/// from the start, so that no later write meets a first touch. Move-only; freed at the end.
class SIFR_API Buffer {
 public:
  Buffer() = default;
  /// Frees `data` by whatever `keep` does at its end.
  Buffer(std::byte* data, std::int64_t bytes, Charge charge, std::shared_ptr<void> keep) noexcept;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() = default;
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  Charge charge_;
  std::shared_ptr<void> keep_;  // after the charge: memory is freed before the account hears of it
};

}  // namespace sifr
