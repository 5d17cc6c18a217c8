#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sifr::detail {

/// What strangers, connections that have not shown the token, may take.
struct StoreBounds {
  std::size_t strangers = 256;  // at a time: further ones wait in the system's queue
  std::chrono::milliseconds patience = std::chrono::seconds(5);  // then they are closed
};

/// A Store behind a port of the loopback interface, served by a thread of its own until the end of
/// this object.
class StoreServer {
 public:
  /// `port` 0 takes a free one. Throws CommError if the port is taken, or if the system refuses
  /// what this needs.
  StoreServer(int size,
              const std::string& token,
              std::uint16_t port,
              const StoreBounds& bounds = {});
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  [[nodiscard]] std::uint16_t port() const noexcept;
  /// Store::rank_ended(), on the server's thread.
  void rank_ended(int rank);

 private:
  struct Service;
  std::unique_ptr<Service> service_;
};

}  // namespace sifr::detail
