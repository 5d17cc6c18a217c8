#include "comm/detail/host_links.hpp"

#include "comm/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <optional>
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

void send(const HostLinks::Link& link,
          std::span<const int> descriptors,
          const KeepWaiting& keep_waiting) {
  try {
    link.socket.send(kMessage, descriptors, keep_waiting);
  } catch (const PeerGone&) {
    throw death_of(link);
  }
}

std::vector<DescriptorHandle> receive(const HostLinks::Link& link,
                                      std::size_t count,
                                      const KeepWaiting& keep_waiting) {
  std::array<std::byte, kMessage.size()> message = {};
  try {
    return link.socket.receive(message, count, keep_waiting);
  } catch (const PeerGone&) {
    throw death_of(link);
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

PeerGone death_of(const HostLinks::Link& link) {
  return {fmt::format("rank {} died: process {} ended without leaving the group",
                      link.rank,
                      link.socket.peer_process()),
          link.rank};
}

HostLinks HostLinks::lead(const UnixListener& listener, int size, const KeepWaiting& keep_waiting) {
  HostLinks made(0, size);
  while (static_cast<int>(made.links_.size()) + 1 < size) {
    UnixSocket socket = listener.accept(keep_waiting);
    Hello hello;
    (void)socket.receive(std::as_writable_bytes(std::span(&hello, 1)), 0, keep_waiting);
    check_hello(hello, size, made.links_, socket.peer_process());
    made.links_.push_back({hello.rank, std::move(socket)});
  }
  std::sort(made.links_.begin(), made.links_.end(), [](const Link& a, const Link& b) {
    return a.rank < b.rank;
  });
  return made;
}

HostLinks HostLinks::follow(const std::string& name, int rank, int size) {
  const PeerGone leader_gone("rank 0 died: its process ended while the group was being made", 0);
  HostLinks made(rank, size);
  UnixSocket socket = UnixSocket::connect(name);
  if (!socket.is_open()) throw PeerGone(leader_gone);
  const Hello hello = {.rank = rank, .size = size};
  try {
    socket.send(std::as_bytes(std::span(&hello, 1)));
  } catch (const PeerGone&) {
    throw PeerGone(leader_gone);
  }
  made.links_.push_back({0, std::move(socket)});
  return made;
}

void HostLinks::send_to_all(int descriptor, const KeepWaiting& keep_waiting) const {
  std::optional<PeerGone> first;
  for (const Link& link : links_) {
    try {
      send(link, {&descriptor, 1}, keep_waiting);
    } catch (const PeerGone& gone) {
      if (!first) first = gone;
    }
  }
  if (first) throw PeerGone(*first);
}

DescriptorHandle HostLinks::receive_from_leader(const KeepWaiting& keep_waiting) const {
  return std::move(receive(links_.front(), 1, keep_waiting).front());
}

std::vector<DescriptorHandle> HostLinks::exchange(int descriptor,
                                                  const KeepWaiting& keep_waiting) const {
  const auto count = static_cast<std::size_t>(size_);
  if (!is_leader()) {
    send(links_.front(), {&descriptor, 1}, keep_waiting);
    return receive(links_.front(), count, keep_waiting);
  }
  std::vector<DescriptorHandle> all;
  all.emplace_back(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (all.front().get() < 0)
    throw std::system_error(errno, std::generic_category(), "dup of shared memory");
  for (const Link& link : links_)
    all.push_back(std::move(receive(link, 1, keep_waiting).front()));
  std::vector<int> numbers;
  numbers.reserve(count);
  for (const DescriptorHandle& one : all)
    numbers.push_back(one.get());
  for (const Link& link : links_)
    send(link, numbers, keep_waiting);
  return all;
}

}  // namespace sifr::detail
