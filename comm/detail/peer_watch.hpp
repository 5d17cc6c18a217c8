#pragma once

#include "comm/detail/control_block.hpp"
#include "comm/detail/host_links.hpp"
#include "device/detail/descriptor_handle.hpp"

#include <thread>
#include <vector>

namespace sifr::detail {

/// A thread that sleeps until a connection closes. A process that ends without leaving the group
/// ends the group, also while this rank computes: others may wait for the dead one.
class PeerWatch {
 public:
  /// `links` outlives the watch.
  PeerWatch(const HostLinks& links, ControlBlock control);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();

  /// Ends the group because of that rank, whoever of this process noticed first.
  void report(const PeerGone& gone) const;

 private:
  void run() const;

  const HostLinks& links_;
  ControlBlock control_;
  DescriptorHandle stop_;  // an eventfd
  std::thread thread_;
};

}  // namespace sifr::detail
