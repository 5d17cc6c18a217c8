#include "comm/detail/rendezvous.hpp"

#include "device/detail/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <unistd.h>

namespace sifr::detail {
namespace {

using std::chrono::steady_clock;

/// What rank 0 tells the others where no launcher has told them.
struct StoreAddress {
  std::array<char, 32> token = {};
  std::uint16_t port = 0;
};

/// A name that this job's ranks derive alike, and that says nothing about the job (FNV-1a).
std::string name_of_job(const std::string& job) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : job)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return fmt::format("sifr-{}-{:016x}", geteuid(), hash);
}

/// torchrun, mpirun and srun hand out no secret. So rank 0 makes one, and tells it to whoever
/// connects to a socket that only processes of this host and this user can reach (the kernel
/// vouches for the user): the store then asks for the token as always. Ports that the launcher
/// named are its own and stay untouched.
Rendezvous host_store(const LaunchEnvironment& environment,
                      const std::string& name,
                      const GroupOptions& options) {
  const std::string token = random_hex();
  Rendezvous made;
  made.server = std::make_unique<StoreServer>(environment.size, token, std::uint16_t{0});
  StoreAddress address;
  std::copy_n(token.begin(), address.token.size(), address.token.begin());
  address.port = made.server->port();
  const UnixListener listener(name);
  const KeepWaiting keep_waiting = patience(0, "the other ranks of this host to start", options);
  for (int told = 1; told < environment.size; ++told) {
    listener.accept(keep_waiting).send(std::as_bytes(std::span(&address, 1)));
  }
  made.client =
      std::make_unique<StoreClient>(fmt::format("127.0.0.1:{}", address.port),
                                    token,
                                    StoreClient::Member{environment.rank, environment.size},
                                    options);
  return made;
}

Rendezvous find_store(const LaunchEnvironment& environment,
                      const std::string& name,
                      const GroupOptions& options) {
  const KeepWaiting keep_waiting =
      patience(environment.rank, "rank 0 to start on this host", options);
  UnixSocket socket;
  while (!(socket = UnixSocket::connect(name)).is_open()) {
    keep_waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  StoreAddress address;
  (void)socket.receive(std::as_writable_bytes(std::span(&address, 1)), 0, keep_waiting);
  Rendezvous found;
  found.client =
      std::make_unique<StoreClient>(fmt::format("127.0.0.1:{}", address.port),
                                    std::string(address.token.data(), address.token.size()),
                                    StoreClient::Member{environment.rank, environment.size},
                                    options);
  return found;
}

}  // namespace

KeepWaiting patience(int rank, const std::string& awaited, const GroupOptions& options) {
  return [rank, awaited, options, start = steady_clock::now(), has_reported = false]() mutable {
    const auto waited = steady_clock::now() - start;
    const double limit = std::chrono::duration<double>(options.timeout).count();
    if (waited >= options.timeout) {
      throw CommTimeout(fmt::format("rank {} waited {:.1f} s for {}", rank, limit, awaited), -1);
    }
    if (has_reported || waited < options.report_after) return;
    has_reported = true;
    log(options.log,
        rank,
        "comm",
        Level::kWarning,
        "the group is being made; waiting for {}; gives up after {:.1f} s",
        awaited,
        limit);
  };
}

Rendezvous meet(const LaunchEnvironment& environment, const GroupOptions& options) {
  if (!environment.store.empty()) {
    Rendezvous found;
    found.client =
        std::make_unique<StoreClient>(environment.store,
                                      environment.token,
                                      StoreClient::Member{environment.rank, environment.size},
                                      options);
    return found;
  }
  const std::string name = name_of_job(environment.job);
  return environment.rank == 0 ? host_store(environment, name, options)
                               : find_store(environment, name, options);
}

}  // namespace sifr::detail
