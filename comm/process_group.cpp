#include "comm/detail/host_links.hpp"
#include "comm/detail/local_communicator.hpp"
#include "comm/detail/process_memory.hpp"
#include "comm/detail/rendezvous.hpp"
#include "comm/detail/shared_segment.hpp"
#include "comm/group.hpp"
#include "device/detail/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <system_error>
#include <unistd.h>

namespace sifr {
namespace detail {
namespace {

/// Processes with the same identity can reach each other by abstract sockets.
std::string host_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::array<char, 64> space = {};
  const ssize_t length = readlink("/proc/self/ns/net", space.data(), space.size());
  return fmt::format(
      "{} {}",
      boot,
      std::string_view(space.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))));
}

/// What a rank says of itself before the group exists: its host, and, on rank 0, the name of the
/// socket it listens at.
std::vector<std::string> introduce(int rank,
                                   const std::string& socket_name,
                                   const Exchange& exchange) {
  const std::string own = host_identity();
  std::vector<std::string> all = exchange(own + "\n" + (rank == 0 ? socket_name : std::string()));
  for (std::size_t r = 0; r < all.size(); ++r) {
    const std::string theirs = all[r].substr(0, all[r].find('\n'));
    if (theirs == own) continue;
    throw CommError(fmt::format("ranks {} and {} are on different hosts or in different network "
                                "namespaces (\"{}\" and \"{}\"): a "
                                "group of processes lives on one host",
                                rank,
                                r,
                                own,
                                theirs),
                    static_cast<int>(r));
  }
  return all;
}

HostLinks connect_host(int rank, int size, const Exchange& exchange, const GroupOptions& options) {
  const std::string offered = "sifr-" + random_hex();
  std::optional<UnixListener> listener;
  if (rank == 0) listener.emplace(offered);
  const std::string introduction = introduce(rank, offered, exchange).front();
  if (rank == 0) {
    (void)exchange("connected");  // tells of ranks that died instead; afterwards all have connected
    return HostLinks::lead(
        *listener, size, patience(rank, "the other ranks of this host", options));
  }
  const std::string name = introduction.substr(introduction.find('\n') + 1);
  try {
    HostLinks links = HostLinks::follow(name, rank, size);
    (void)exchange("connected");
    return links;
  } catch (const PeerGone&) {
    (void)exchange("connected");  // tells if rank 0 gave up because of another one
    throw;
  }
}

/// The memory that all ranks of a group write, and what they know it by.
struct SharedControl {
  DescriptorHandle memory;
  ControlBlock block;
};

std::int64_t control_bytes(int size) {
  return static_cast<std::int64_t>(ControlBlock::bytes_for(size));
}

std::shared_ptr<SharedSegment> map_control(const DescriptorHandle& memory, int size) {
  return std::make_shared<SharedSegment>(
      memory.get(), control_bytes(size), SharedSegment::Access::kReadWrite);
}

SharedControl make_control(int size) {
  DescriptorHandle memory = make_shared_memory("sifr-control", control_bytes(size));
  const auto segment = map_control(memory, size);
  return {std::move(memory), ControlBlock(segment->data(), size, segment)};
}

SharedControl receive_control(const HostLinks& links, const KeepWaiting& keep_waiting) {
  DescriptorHandle memory = links.receive_from_leader(keep_waiting);
  if (sealed_size(memory.get()) != control_bytes(links.size()))
    throw CommError("rank 0 is another version of sifr", 0);
  const auto segment = map_control(memory, links.size());
  return {std::move(memory), ControlBlock::attach(segment->data(), links.size(), segment)};
}

/// Writes down why this rank gives up, if nobody has written anything yet.
void tell_failure(const ControlBlock& control, int rank, const std::exception& error) {
  if (const auto* gone = dynamic_cast<const PeerGone*>(&error)) {
    control.abort({FailureKind::kDied, gone->rank(), gone->what()});
  } else {
    control.fail(rank, error.what());
  }
}

// A rank hands its open files to all others in one message.
static_assert(LaunchEnvironment::kMostRanks <= kMostDescriptors);

GroupOptions bounded(const GroupOptions& options) {
  GroupOptions result = options;
  result.timeout = std::min(options.timeout, kLongestTimeout);
  result.report_after = std::min(options.report_after, kLongestTimeout);
  return result;
}

std::unique_ptr<Communicator> join(
    Device& device, int rank, int size, const Exchange& exchange, const GroupOptions& options) {
  // Before the ranks meet: where there is no room for it, the exchange does not succeed.
  std::optional<SharedControl> control;
  if (rank == 0) control = make_control(size);
  // Its end is what the others take for this rank's death: it comes after the reason.
  const auto links = std::make_shared<const HostLinks>(connect_host(rank, size, exchange, options));
  if (!control) control = receive_control(*links, patience(rank, "rank 0", options));
  try {
    if (links->is_leader()) {
      links->send_to_all(control->memory.get(),
                         patience(rank, "the other ranks of this host", options));
    }
    auto group = std::make_unique<LocalCommunicator>(
        device,
        rank,
        control->block,
        std::make_unique<ProcessMemory>(device, links, control->block, rank),
        options);
    group->barrier({"make the group"});
    return group;
  } catch (const std::exception& error) {
    tell_failure(control->block, rank, error);
    throw;
  }
}

std::unique_ptr<Communicator> meet_and_join(Device& device,
                                            const LaunchEnvironment& environment,
                                            const GroupOptions& options) {
  const Rendezvous rendezvous = meet(environment, bounded(options));
  int round = 0;
  const Exchange exchange = [&](std::string_view mine) {
    return rendezvous.client->gather(fmt::format("make the group, part {}", ++round),
                                     std::string(mine));
  };
  try {
    auto group = join_process_group(device, environment.rank, environment.size, exchange, options);
    rendezvous.client->leave();
    return group;
  } catch (const std::exception& error) {
    rendezvous.client->fail(error.what());  // no effect where another rank's failure came first
    throw;
  }
}

}  // namespace
}  // namespace detail

std::unique_ptr<Communicator> join_process_group(
    Device& device, int rank, int size, const Exchange& exchange, const GroupOptions& options) {
  SIFR_REQUIRE(UsageError,
               size >= 1 && rank >= 0 && rank < size,
               "rank {} does not exist in a group of {}",
               rank,
               size);
  SIFR_REQUIRE(UsageError,
               size <= LaunchEnvironment::kMostRanks,
               "a group of processes has at most {} ranks, not {}",
               LaunchEnvironment::kMostRanks,
               size);
  if (size == 1) return std::move(make_thread_group({&device}, options).front());
  try {
    return detail::join(device, rank, size, exchange, detail::bounded(options));
  } catch (const std::system_error& error) {
    throw CommError(fmt::format("rank {} cannot reach its peers: {}", rank, error.what()), rank);
  }
}

std::unique_ptr<Communicator> make_process_group(Device& device,
                                                 const LaunchEnvironment& environment,
                                                 const GroupOptions& options) {
  if (environment.size == 1) return join_process_group(device, 0, 1, {}, options);
  if (environment.local_size != environment.size) {
    throw CommError(
        fmt::format(
            "{} started {} ranks, {} of them on this host: a group of processes lives on one host",
            environment.launcher,
            environment.size,
            environment.local_size),
        -1);
  }
  try {
    return detail::meet_and_join(device, environment, options);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // the system refused a connection, a thread, memory
    throw CommError(
        fmt::format("rank {} cannot meet its peers: {}", environment.rank, error.what()),
        environment.rank);
  }
}

}  // namespace sifr
