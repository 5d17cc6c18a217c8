#pragma once

#include "comm/detail/unix_socket.hpp"

#include <string>
#include <vector>

namespace sifr::detail {

/// The connections between the ranks of one host: a star around its leader, rank 0. They carry open
/// files, and stay open as a sign of life: the system closes them when a process ends, however it
/// ends.
class HostLinks {
 public:
  /// Rank 0: waits at `listener` until every other rank has come.
  [[nodiscard]] static HostLinks lead(const UnixListener& listener,
                                      int size,
                                      const KeepWaiting& keep_waiting);
  /// Another rank: connects to the leader, who listens already.
  [[nodiscard]] static HostLinks follow(const std::string& name, int rank, int size);

  /// Every rank hands in an open file and gets everybody's in rank order, its own included.
  [[nodiscard]] std::vector<DescriptorHandle> exchange(int descriptor,
                                                       const KeepWaiting& keep_waiting) const;

  /// The leader hands one open file to every other rank.
  void send_to_all(int descriptor, const KeepWaiting& keep_waiting) const;
  [[nodiscard]] DescriptorHandle receive_from_leader(const KeepWaiting& keep_waiting) const;

  /// A rank at the other end of a connection; rank 0 for all but the leader.
  struct Link {
    int rank = -1;
    UnixSocket socket;
  };
  [[nodiscard]] const std::vector<Link>& links() const noexcept { return links_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool is_leader() const noexcept { return rank_ == 0; }

 private:
  HostLinks(int rank, int size) noexcept : rank_(rank), size_(size) {}

  int rank_;
  int size_;
  std::vector<Link> links_;  // the leader's in rank order
};

}  // namespace sifr::detail
