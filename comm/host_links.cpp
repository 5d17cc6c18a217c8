#include "comm/detail/host_links.hpp"

#include "comm/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <poll.h>
#include <system_error>

namespace sifr::detail {
namespace {

/// The first message of a rank to its leader.
struct Hello {
  std::uint32_t protocol = 0x73696601;  // changes with the layout of ControlBlock
  std::int32_t rank = -1;
  std::int32_t size = 0;
};

constexpr std::array<std::byte, 1> kMessage = {};  // open files travel beside at least one byte

bool has_ended(const UnixSocket& socket) noexcept {
  pollfd entry = {socket.descriptor(), POLLRDHUP, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void check_alive(const std::vector<HostLinks::Link>& links) {
  for (const HostLinks::Link& link : links) {
    if (has_ended(link.socket)) {
      throw CommError(fmt::format("rank {} died: process {} ended while the group was being made",
                                  link.rank,
                                  link.socket.peer_process()),
                      link.rank);
    }
  }
}

void check_hello(const Hello& hello,
                 int size,
                 const std::vector<HostLinks::Link>& links,
                 int process) {
  if (hello.protocol != Hello{}.protocol) {
    throw CommError(
        fmt::format("process {} speaks another protocol: every rank needs the same version of sifr",
                    process),
        -1);
  }
  if (hello.size != size || hello.rank < 1 || hello.rank >= size) {
    throw CommError(fmt::format("process {} says that it is rank {} of {}, in a group of {}",
                                process,
                                hello.rank,
                                hello.size,
                                size),
                    hello.rank);
  }
  const auto is_taken = [&](const HostLinks::Link& link) { return link.rank == hello.rank; };
  if (std::any_of(links.begin(), links.end(), is_taken)) {
    throw CommError(fmt::format("two processes say that they are rank {}", hello.rank), hello.rank);
  }
}

}  // namespace

HostLinks HostLinks::lead(const UnixListener& listener, int size, const KeepWaiting& keep_waiting) {
  HostLinks made(0, size);
  const KeepWaiting keep_accepting = [&] {
    check_alive(made.links_);
    keep_waiting();
  };
  while (static_cast<int>(made.links_.size()) + 1 < size) {
    UnixSocket socket = listener.accept(keep_accepting);
    Hello hello;
    (void)socket.receive(std::as_writable_bytes(std::span(&hello, 1)), 0, keep_accepting);
    check_hello(hello, size, made.links_, socket.peer_process());
    made.links_.push_back({hello.rank, std::move(socket)});
  }
  std::sort(made.links_.begin(), made.links_.end(), [](const Link& a, const Link& b) {
    return a.rank < b.rank;
  });
  return made;
}

HostLinks HostLinks::follow(const std::string& name, int rank, int size) {
  HostLinks made(rank, size);
  UnixSocket socket = UnixSocket::connect(name);
  if (!socket.is_open()) throw CommError("rank 0 ended while the group was being made", 0);
  const Hello hello = {.rank = rank, .size = size};
  socket.send(std::as_bytes(std::span(&hello, 1)));
  made.links_.push_back({0, std::move(socket)});
  return made;
}

void HostLinks::send_to_all(int descriptor, const KeepWaiting& keep_waiting) const {
  for (const Link& link : links_)
    link.socket.send(kMessage, {&descriptor, 1}, keep_waiting);
}

DescriptorHandle HostLinks::receive_from_leader(const KeepWaiting& keep_waiting) const {
  std::array<std::byte, 1> message = {};
  return std::move(links_.front().socket.receive(message, 1, keep_waiting).front());
}

std::vector<DescriptorHandle> HostLinks::exchange(int descriptor,
                                                  const KeepWaiting& keep_waiting) const {
  std::array<std::byte, 1> message = kMessage;
  const auto count = static_cast<std::size_t>(size_);
  if (!is_leader()) {
    links_.front().socket.send(message, {&descriptor, 1}, keep_waiting);
    return links_.front().socket.receive(message, count, keep_waiting);
  }
  std::vector<DescriptorHandle> all;
  all.emplace_back(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (all.front().get() < 0)
    throw std::system_error(errno, std::generic_category(), "dup of shared memory");
  for (const Link& link : links_)
    all.push_back(std::move(link.socket.receive(message, 1, keep_waiting).front()));
  std::vector<int> numbers;
  numbers.reserve(count);
  for (const DescriptorHandle& one : all)
    numbers.push_back(one.get());
  for (const Link& link : links_)
    link.socket.send(message, numbers, keep_waiting);
  return all;
}

}  // namespace sifr::detail
