#pragma once

#include "comm/communicator.hpp"
#include "device/detail/descriptor_handle.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sifr::detail {

/// Looks whether waiting still makes sense, every 50 ms or so; throws if not.
using KeepWaiting = std::function<void()>;

/// Waits until `descriptor` can be read; `keep_waiting` ends it.
void wait_readable(int descriptor, const KeepWaiting& keep_waiting);

/// A message carries no more open files; the kernel's own limit is 253.
inline constexpr std::size_t kMostDescriptors = 250;

/// The process at the other end has ended, or closed the connection.
class PeerGone : public CommError {
 public:
  using CommError::CommError;
};

/// A connection between two processes of one host and one user, in messages that may carry open
/// files.
class UnixSocket {
 public:
  UnixSocket() = default;
  explicit UnixSocket(DescriptorHandle socket) noexcept : socket_(std::move(socket)) {}

  /// Connects to an abstract name; an empty socket if nobody listens there. Throws CommError if the
  /// listener belongs to another user, std::system_error otherwise.
  [[nodiscard]] static UnixSocket connect(const std::string& name);

  [[nodiscard]] bool is_open() const noexcept { return socket_.get() >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  /// The process at the other end when it connected.
  [[nodiscard]] int peer_process() const noexcept;

  /// Open files may have to wait until others of this user have been received; `keep_waiting` ends
  /// that. Throws PeerGone.
  void send(std::span<const std::byte> message,
            std::span<const int> descriptors = {},
            const KeepWaiting& keep_waiting = {}) const;
  /// Throws PeerGone, or CommError if the peer's message is not `message.size()` bytes with
  /// `count` open files; std::system_error if this process may not open as many.
  std::vector<DescriptorHandle> receive(std::span<std::byte> message,
                                        std::size_t count,
                                        const KeepWaiting& keep_waiting) const;

 private:
  DescriptorHandle socket_;
};

/// Waits for connections at an abstract name, which vanishes with the process.
class UnixListener {
 public:
  /// Throws std::system_error; EADDRINUSE if another process listens there.
  explicit UnixListener(const std::string& name);
  /// The next connection of a process of the same user; others are turned away.
  [[nodiscard]] UnixSocket accept(const KeepWaiting& keep_waiting) const;

 private:
  DescriptorHandle socket_;
};

/// 128 bits from the system as 32 hex digits.
[[nodiscard]] std::string random_hex();

}  // namespace sifr::detail
