#include "comm/detail/local_communicator.hpp"
#include "comm/group.hpp"
#include "device/detail/check.hpp"

namespace sifr {
namespace detail {
namespace {

/// All ranks live in one address space: any tensor is found by its address.
class ThreadMemory final : public PeerMemory {
 public:
  explicit ThreadMemory(Device& device) : device_(device) {}

  SharedBuffer allocate(std::int64_t bytes, Purpose purpose, const Call&) override {
    return device_.allocate(bytes, purpose);
  }
  Place place_of(const std::byte* data, std::int64_t) const override {
    return {Place::kAddress, reinterpret_cast<std::intptr_t>(data)};
  }
  const std::byte* find(int, const Place& place, std::int64_t) const override {
    return reinterpret_cast<const std::byte*>(place.offset);  // NOLINT(performance-no-int-to-ptr)
  }
  bool is_owned_by_peers() const noexcept override { return true; }

 private:
  Device& device_;
};

}  // namespace
}  // namespace detail

std::vector<std::unique_ptr<Communicator>> make_thread_group(const std::vector<Device*>& devices,
                                                             const GroupOptions& options) {
  SIFR_REQUIRE(UsageError, !devices.empty(), "a group needs at least one rank");
  const detail::ControlBlock control =
      detail::make_thread_control_block(static_cast<int>(devices.size()));
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (std::size_t r = 0; r < devices.size(); ++r) {
    SIFR_REQUIRE(UsageError, devices[r] != nullptr, "the device of rank {} is null", r);
    ranks.push_back(std::make_unique<detail::LocalCommunicator>(
        *devices[r],
        static_cast<int>(r),
        control,
        std::make_unique<detail::ThreadMemory>(*devices[r]),
        options));
  }
  return ranks;
}

}  // namespace sifr
