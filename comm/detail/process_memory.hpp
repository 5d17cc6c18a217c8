#pragma once

#include "comm/detail/control_block.hpp"
#include "comm/detail/host_links.hpp"
#include "comm/detail/peer_memory.hpp"
#include "comm/detail/peer_watch.hpp"
#include "comm/detail/shared_segment.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

namespace sifr::detail {

/// Arenas of processes: each rank writes its own and maps its peers' read-only, so that no rank can
/// spoil another's tensors. Arenas of the same call of allocate() have the same number on every
/// rank.
class ProcessMemory final : public PeerMemory {
 public:
  ProcessMemory(Device& device,
                std::shared_ptr<const HostLinks> links,
                ControlBlock control,
                int rank);

  [[nodiscard]] SharedBuffer allocate(std::int64_t bytes,
                                      Purpose purpose,
                                      const Call& call) override;
  [[nodiscard]] Place place_of(const std::byte* data, std::int64_t bytes) const override;
  [[nodiscard]] const std::byte* find(int rank,
                                      const Place& place,
                                      std::int64_t bytes) const override;
  [[nodiscard]] bool is_owned_by_peers() const noexcept override { return false; }

 private:
  /// One rank's arena and its peers' of the same call, in rank order.
  struct Arenas {
    SharedSegment own;
    std::vector<SharedSegment> peers;
  };
  /// Buffers outlive the group if the user wants it so; the table outlives both.
  struct Table {
    mutable std::mutex
        mutex;  // a buffer may be freed on another thread than the one that runs collectives
    std::map<std::int32_t, Arenas> arenas;
    std::map<const std::byte*, std::int32_t> starts;  // of the own arenas
  };

  [[nodiscard]] std::vector<DescriptorHandle> exchange(int descriptor, const Call& call) const;
  [[nodiscard]] Arenas map_arenas(std::int64_t bytes, const Call& call) const;
  /// Throws as OutOfMemory or DeviceError what the system has said.
  [[noreturn]] void refuse(const std::system_error& error,
                           std::int64_t bytes,
                           Purpose purpose) const;

  Device& device_;
  std::shared_ptr<const HostLinks> links_;
  ControlBlock control_;
  int rank_;
  std::shared_ptr<Table> table_ = std::make_shared<Table>();
  std::int32_t next_ = 0;
  PeerWatch watch_;
};

}  // namespace sifr::detail
