#pragma once

#include "comm/detail/descriptor.hpp"
#include "comm/detail/waiting.hpp"

#include <cstddef>
#include <cstdint>

namespace sifr::detail {

/// How the ranks of a group reach one another's tensors: by address where they are threads, by
/// read-only mappings of shared arenas where they are processes.
class PeerMemory {
 public:
  PeerMemory() = default;
  virtual ~PeerMemory() = default;
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// Every rank calls this at the same time.
  [[nodiscard]] virtual SharedBuffer allocate(std::int64_t bytes,
                                              Purpose purpose,
                                              const Call& call) = 0;

  /// Where peers find this rank's bytes.
  [[nodiscard]] virtual Place place_of(const std::byte* data, std::int64_t bytes) const = 0;
  /// A peer's bytes as this rank reads them; null if it cannot.
  [[nodiscard]] virtual const std::byte* find(int rank,
                                              const Place& place,
                                              std::int64_t bytes) const = 0;
  /// True if a peer's tensor can vanish while this rank reads it, because they are the same memory:
  /// then whoever gives up a collective waits until nobody reads.
  [[nodiscard]] virtual bool is_owned_by_peers() const noexcept = 0;
};

}  // namespace sifr::detail
