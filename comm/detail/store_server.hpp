#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace sifr::detail {

/// A Store behind a port of the loopback interface, served by a thread of its own until the end of
/// this object.
class StoreServer {
 public:
  /// `port` 0 takes a free one. Throws CommError naming the port if it is taken.
  StoreServer(int size, const std::string& token, std::uint16_t port);
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  [[nodiscard]] std::uint16_t port() const noexcept;

 private:
  struct Service;
  std::unique_ptr<Service> service_;
};

}  // namespace sifr::detail
