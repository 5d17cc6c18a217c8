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
  /// Rank 0: waits at `listener` until every other rank has come. One that came and has ended since
  /// is a link like the others.
  [[nodiscard]] static HostLinks lead(const UnixListener& listener,
                                      int size,
                                      const KeepWaiting& keep_waiting);
  /// Another rank: connects to the leader, who listens already. Throws PeerGone if it does no more.
  [[nodiscard]] static HostLinks follow(const std::string& name, int rank, int size);

  /// Every rank hands in an open file and gets everybody's in rank order, its own included. This
  /// and what follows throws PeerGone with the rank whose process has ended.
  [[nodiscard]] std::vector<DescriptorHandle> exchange(int descriptor,
                                                       const KeepWaiting& keep_waiting) const;

  /// The leader hands one open file to every other rank; to all who live before it throws because
  /// of one who does not.
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

/// What there is to say once the process at the other end has gone.
[[nodiscard]] PeerGone death_of(const HostLinks::Link& link);

}  // namespace sifr::detail
