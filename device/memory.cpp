#include "device/memory.hpp"

#include "device/detail/check.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

namespace sifr {

namespace {

void check_room(const MemoryTable& table, std::int64_t bytes, Purpose purpose, Tier tier) {
  SIFR_REQUIRE(
      UsageError, bytes >= 0, "{} memory of {} bytes was asked for", name_of(purpose), bytes);
  constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();
  const std::int64_t limit = table.limit(tier).value_or(kUnbounded);
  const std::int64_t left = limit - table.total(tier).now;
  if (bytes <= left) return;
  throw OutOfMemory(
      fmt::format("{} needs {} of {} memory, {} are left of the limit of {}: raise the limit, "
                  "lower the size or shard over more ranks",
                  name_of(purpose),
                  mib(bytes),
                  name_of(tier),
                  mib(left),
                  mib(limit)),
      table.with_refused(tier, purpose, bytes));
}

}  // namespace

OutOfMemory::OutOfMemory(const std::string& text, const MemoryTable& table)
    : std::runtime_error(text + "\n" + table.to_string()), table_(table) {}

Charge::Charge(std::shared_ptr<MemoryAccount> account,
               Tier tier,
               Purpose purpose,
               std::int64_t bytes) noexcept
    : account_(std::move(account)), tier_(tier), purpose_(purpose), bytes_(bytes) {}

Charge::Charge(Charge&& other) noexcept
    : account_(std::move(other.account_)),
      tier_(other.tier_),
      purpose_(other.purpose_),
      bytes_(std::exchange(other.bytes_, 0)) {}

Charge& Charge::operator=(Charge&& other) noexcept {
  if (this != &other) {
    if (account_ != nullptr) account_->release(tier_, purpose_, bytes_);
    account_ = std::move(other.account_);
    tier_ = other.tier_;
    purpose_ = other.purpose_;
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Charge::~Charge() {
  if (account_ != nullptr) account_->release(tier_, purpose_, bytes_);
}

struct MemoryAccount::State {
  mutable std::mutex mutex;
  MemoryTable table;
};

MemoryAccount::MemoryAccount(const Limits& limits) : state_(std::make_unique<State>()) {
  for (const std::optional<std::int64_t>& limit : {limits.device, limits.host}) {
    SIFR_REQUIRE(
        UsageError, limit.value_or(0) >= 0, "a memory limit is {} bytes, needs 0 or more", *limit);
  }
  state_->table.limits = limits;
}

MemoryAccount::~MemoryAccount() = default;

std::shared_ptr<MemoryAccount> MemoryAccount::make(const Limits& limits) {
  struct Made final : MemoryAccount {  // reaches the private constructor
    explicit Made(const Limits& bounds) : MemoryAccount(bounds) {}
  };
  return std::make_shared<Made>(limits);
}

Charge MemoryAccount::charge(std::int64_t bytes, Purpose purpose, Tier tier) {
  const std::scoped_lock lock(state_->mutex);
  MemoryTable& table = state_->table;
  check_room(table, bytes, purpose, tier);
  MemoryTable::Row& row =
      table.rows[static_cast<std::size_t>(tier)][static_cast<std::size_t>(purpose)];
  MemoryTable::Row& total = table.totals[static_cast<std::size_t>(tier)];
  for (MemoryTable::Row* each : {&row, &total}) {
    each->now += bytes;
    each->peak = std::max(each->peak, each->now);
  }
  return {shared_from_this(), tier, purpose, bytes};
}

void MemoryAccount::require_room(std::int64_t bytes, Purpose purpose, Tier tier) const {
  const std::scoped_lock lock(state_->mutex);
  check_room(state_->table, bytes, purpose, tier);
}

void MemoryAccount::require_available(std::int64_t bytes, Purpose purpose) const {
  constexpr std::int64_t kNegligible = std::int64_t{2} << 20;  // not worth the look into /proc
  if (bytes < kNegligible) return;
  const std::int64_t available = available_bytes();
  if (bytes <= available) return;
  throw OutOfMemory(
      fmt::format(
          "{} needs {}, the machine has {} left for this process: lower the size, shard over "
          "more ranks or hosts, or end what else runs here",
          name_of(purpose),
          mib(bytes),
          mib(available)),
      table().with_refused(Tier::kDevice, purpose, bytes));
}

MemoryTable MemoryAccount::table() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->table;
}

void MemoryAccount::release(Tier tier, Purpose purpose, std::int64_t bytes) noexcept {
  const std::scoped_lock lock(state_->mutex);
  state_->table.rows[static_cast<std::size_t>(tier)][static_cast<std::size_t>(purpose)].now -=
      bytes;
  state_->table.totals[static_cast<std::size_t>(tier)].now -= bytes;
}

Buffer::Buffer(std::byte* data,
               std::int64_t bytes,
               Charge charge,
               std::shared_ptr<void> keep) noexcept
    : data_(data), bytes_(bytes), charge_(std::move(charge)), keep_(std::move(keep)) {}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      charge_(std::move(other.charge_)),
      keep_(std::move(other.keep_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    keep_ = std::move(other.keep_);
    charge_ = std::move(other.charge_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

}  // namespace sifr
