#include "comm/detail/unix_socket.hpp"

#include "comm/communicator.hpp"
#include "device/detail/check.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <system_error>
#include <thread>

namespace sifr::detail {
namespace {

constexpr int kPollMilliseconds = 50;
constexpr auto kPauseUntilReceived = std::chrono::milliseconds(1);

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Address {
  sockaddr_un name = {};
  socklen_t length = 0;
};

/// An abstract name starts with a zero byte and lies in no file system.
Address abstract_address(const std::string& name) {
  Address address;
  address.name.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.name.sun_path) - 1);
  std::copy_n(name.data(), length, address.name.sun_path + 1);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

ucred credentials_of(int socket) noexcept {
  ucred credentials = {-1, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
  socklen_t length = sizeof(credentials);
  getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length);
  return credentials;
}

DescriptorHandle make_socket() {
  DescriptorHandle made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (made.get() < 0) fail("socket(AF_UNIX)");
  return made;
}

/// Room for the control message that carries open files.
struct ControlRoom {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> bytes = {};
};

std::vector<DescriptorHandle> take_descriptors(msghdr& header) {
  std::vector<DescriptorHandle> taken;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      taken.emplace_back(descriptor);
    }
  }
  return taken;
}

}  // namespace

void wait_readable(int descriptor, const KeepWaiting& keep_waiting) {
  pollfd entry = {descriptor, POLLIN, 0};
  for (;;) {
    const int ready = poll(&entry, 1, kPollMilliseconds);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail("poll");
    keep_waiting();
  }
}

UnixSocket UnixSocket::connect(const std::string& name) {
  UnixSocket made(make_socket());
  const Address address = abstract_address(name);
  if (::connect(made.descriptor(),
                reinterpret_cast<const sockaddr*>(&address.name),
                address.length) != 0) {
    if (errno == ECONNREFUSED || errno == EAGAIN) return {};
    fail("connect to the socket of the host's first rank");
  }
  const uid_t owner = credentials_of(made.descriptor()).uid;
  if (owner != geteuid()) {
    throw CommError(
        fmt::format(
            "the socket {} belongs to user {}, not to this job's user {}", name, owner, geteuid()),
        -1);
  }
  return made;
}

int UnixSocket::peer_process() const noexcept {
  return credentials_of(descriptor()).pid;
}

void UnixSocket::send(std::span<const std::byte> message,
                      std::span<const int> descriptors,
                      const KeepWaiting& keep_waiting) const {
  SIFR_REQUIRE(UsageError,
               descriptors.size() <= kMostDescriptors,
               "a message carries at most {} open files, not {}",
               kMostDescriptors,
               descriptors.size());
  iovec piece = {const_cast<std::byte*>(message.data()), message.size()};
  ControlRoom room;
  msghdr header = {};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = room.bytes.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(control), descriptors.data(), descriptors.size_bytes());
  }
  while (sendmsg(descriptor(), &header, MSG_NOSIGNAL) < 0) {
    if (errno == EPIPE || errno == ECONNRESET)
      throw PeerGone("a rank of this host closed its connection", -1);
    // As many open files as a process may have can be on their way between all of a user's.
    if (errno == ETOOMANYREFS && keep_waiting) {
      keep_waiting();
      std::this_thread::sleep_for(kPauseUntilReceived);
      continue;
    }
    if (errno != EINTR) fail("sendmsg to a rank of this host");
  }
}

std::vector<DescriptorHandle> UnixSocket::receive(std::span<std::byte> message,
                                                  std::size_t count,
                                                  const KeepWaiting& keep_waiting) const {
  wait_readable(descriptor(), keep_waiting);
  iovec piece = {message.data(), message.size()};
  ControlRoom room;
  msghdr header = {};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = room.bytes.data();
  header.msg_controllen = room.bytes.size();
  const ssize_t length = recvmsg(descriptor(), &header, MSG_CMSG_CLOEXEC);
  if (length == 0 || (length < 0 && errno == ECONNRESET)) {
    throw PeerGone(fmt::format("a rank of this host (process {}) ended", peer_process()), -1);
  }
  if (length < 0) fail("recvmsg from a rank of this host");
  std::vector<DescriptorHandle> taken = take_descriptors(header);
  if (taken.size() < count && (header.msg_flags & MSG_CTRUNC) != 0) {
    errno = EMFILE;  // what found no free number was closed
    fail(fmt::format("receiving {} open files", count));
  }
  if (static_cast<std::size_t>(length) != message.size() || taken.size() != count ||
      (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    throw CommError(fmt::format("process {} sent {} bytes with {} open files where {} with {} "
                                "belong: is it another version?",
                                peer_process(),
                                length,
                                taken.size(),
                                message.size(),
                                count),
                    -1);
  }
  return taken;
}

UnixListener::UnixListener(const std::string& name) : socket_(make_socket()) {
  const Address address = abstract_address(name);
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) != 0)
    fail("bind to " + name);
  if (listen(socket_.get(), SOMAXCONN) != 0) fail("listen");
}

UnixSocket UnixListener::accept(const KeepWaiting& keep_waiting) const {
  for (;;) {
    wait_readable(socket_.get(), keep_waiting);
    UnixSocket accepted(DescriptorHandle(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    if (!accepted.is_open()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      fail("accept");
    }
    if (credentials_of(accepted.descriptor()).uid == geteuid()) return accepted;
  }
}

std::string random_hex() {
  std::array<std::uint64_t, 2> words = {};
  if (getrandom(words.data(), sizeof(words), 0) != sizeof(words)) fail("getrandom");
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

}  // namespace sifr::detail
