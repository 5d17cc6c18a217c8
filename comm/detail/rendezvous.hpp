#pragma once

#include "comm/detail/store_client.hpp"
#include "comm/detail/store_server.hpp"
#include "comm/detail/unix_socket.hpp"
#include "comm/launch_environment.hpp"

#include <memory>
#include <string>

namespace sifr::detail {

/// This rank's way to the store of its job, and on rank 0, where the launcher brings no store, the
/// store itself.
struct Rendezvous {
  std::unique_ptr<StoreServer> server;  // outlives every rank's use of the store
  std::unique_ptr<StoreClient> client;
};

/// Finds the store that the launcher keeps (`sifr run`), or agrees on one with rank 0 (all other
/// launchers).
[[nodiscard]] Rendezvous meet(const LaunchEnvironment& environment, const GroupOptions& options);

/// Reports after options.report_after what this rank waits for, and throws CommTimeout at
/// options.timeout.
[[nodiscard]] KeepWaiting patience(int rank,
                                   const std::string& awaited,
                                   const GroupOptions& options);

}  // namespace sifr::detail
