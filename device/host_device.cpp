#include "device/detail/check.hpp"
#include "device/detail/log.hpp"
#include "device/detail/settle_thread.hpp"
#include "device/device.hpp"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sifr {
namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

/// Buffers of huge pages begin this far apart within a huge page, in turns. Passing over several
/// arrays at once runs at a quarter of memory's speed where their distances are large powers of
/// two: they meet in the same banks.
constexpr std::int64_t kStagger = 320 << 10;
constexpr std::int64_t kStaggerCount = kHugePage / kStagger;

/// An anonymous mapping, unmapped at the end.
class Mapping {
 public:
  /// `data()` stays null if the system has no such memory; errno then tells why. `turn` counts the
  /// buffers.
  Mapping(std::int64_t bytes, std::int64_t turn) noexcept
      : bytes_(static_cast<std::size_t>(bytes >= kHugePage ? bytes + 2 * kHugePage : bytes)) {
    void* const address =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return;
    begin_ = static_cast<std::byte*>(address);
    data_ = begin_;
    if (bytes < kHugePage) return;
    madvise(begin_, bytes_, MADV_HUGEPAGE);  // advice: refused without harm
    const auto beyond =
        static_cast<std::int64_t>(std::bit_cast<std::uintptr_t>(begin_) % kHugePage);
    data_ = begin_ + (kHugePage - beyond) + turn % kStaggerCount * kStagger;
  }
  ~Mapping() {
    if (begin_ != nullptr) munmap(begin_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::size_t bytes_;
  std::byte* begin_ = nullptr;
  std::byte* data_ = nullptr;
};

/// Makes [data, data + bytes) resident; `data` lies on a page. 0, or the errno of the refusal.
int populate(std::byte* data, std::int64_t bytes) noexcept {
#ifdef MADV_POPULATE_WRITE
  constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
  constexpr int kPopulate = 23;
#endif
  if (madvise(data, static_cast<std::size_t>(bytes), kPopulate) == 0) return 0;
  if (errno != EINVAL) return errno;
  for (std::int64_t offset = 0; offset < bytes; offset += kPage) {  // a kernel before 5.14
    *static_cast<volatile std::byte*>(data + offset) = std::byte{0};
  }
  return 0;
}

class HostDevice final : public Device {
 public:
  explicit HostDevice(const HostOptions& options)
      : account_(MemoryAccount::make(options.limits)),
        cpus_(options.cpus),
        pool_(options.threads, options.cpus),
        compute_(Stream::caller(&pool_)) {}

  [[nodiscard]] DeviceKind kind() const noexcept override { return DeviceKind::kHost; }
  [[nodiscard]] MemoryAccount& account() noexcept override { return *account_; }
  [[nodiscard]] ThreadPool& pool() noexcept override { return pool_; }
  [[nodiscard]] Stream& compute() noexcept override { return compute_; }
  [[nodiscard]] Stream make_stream(const std::string& name) override {
    return Stream::worker(name, &pool_, cpus_);
  }

  [[nodiscard]] Buffer allocate(std::int64_t bytes, Purpose purpose) override {
    if (bytes == 0) return {nullptr, 0, account_->charge(bytes, purpose), nullptr};
    account_->require_room(bytes, purpose);
    account_->require_available(bytes, purpose);
    auto mapping = std::make_shared<Mapping>(bytes, turn_++);
    require_memory(mapping->data() != nullptr ? 0 : errno, bytes, purpose);
    require_memory(prefault(mapping->data(), bytes), bytes, purpose);
    Charge charge = account_->charge(bytes, purpose);  // now that it is there
    std::byte* const data = mapping->data();
    return {data, bytes, std::move(charge), std::move(mapping)};
  }

 private:
  [[nodiscard]] int prefault(std::byte* data, std::int64_t bytes) {
    std::atomic<int> refusal = 0;
    pool_.parallel_for(bytes, 4 * kHugePage, [&](std::int64_t first, std::int64_t last) {
      if (const int error = populate(data + first, last - first); error != 0) refusal = error;
    });
    return refusal;
  }

  void require_memory(int error, std::int64_t bytes, Purpose purpose) const {
    if (error == 0) return;
    throw OutOfMemory(
        fmt::format(
            "the system refused {} for {}: {}", mib(bytes), name_of(purpose), std::strerror(error)),
        account_->table().with_refused(Tier::kDevice, purpose, bytes));
  }

  std::shared_ptr<MemoryAccount> account_;
  std::atomic<std::int64_t> turn_ = 0;
  std::vector<int> cpus_;
  ThreadPool pool_;
  Stream compute_;
};

bool may_bind_to(const std::vector<int>& cpus) {
  bool may_bind = true;
  detail::start_thread("sifr-probe", {}, [&] {
    may_bind = detail::settle_this_thread("sifr-probe", cpus);
  }).join();
  return may_bind;
}

}  // namespace

std::unique_ptr<Device> make_host_device(const HostOptions& options) {
  HostOptions settled = options;
  if (!may_bind_to(options.cpus)) {
    detail::log(
        options.log,
        options.rank,
        "device",
        Level::kWarning,
        "the system refuses to bind threads to the CPUs {}: helpers and workers run anywhere",
        fmt::join(options.cpus, ","));
    settled.cpus.clear();
  }
  return std::make_unique<HostDevice>(settled);
}

}  // namespace sifr
