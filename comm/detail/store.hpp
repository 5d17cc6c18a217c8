#pragma once

#include "comm/detail/store_protocol.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sifr::detail {

/// What the ranks of a job tell each other before they have a group: in a *gather* every rank hands
/// in bytes and gets everybody's. Nothing stays behind, so the next gather may have the same name.
/// This is the logic without sockets.
class Store {
 public:
  using Connection = std::uint64_t;
  struct Outgoing {
    Connection to = 0;
    store::Reply reply = {};
    bool then_close = false;
  };

  Store(int size, std::string token);

  /// A message came in.
  [[nodiscard]] std::vector<Outgoing> receive(Connection from, std::span<const std::byte> message);
  /// A connection has ended. Whoever joined and did not say goodbye has died, which ends
  /// everybody's gather.
  [[nodiscard]] std::vector<Outgoing> close(Connection connection);
  /// A launcher saw that rank's process end. One that never came ends everybody's gather too.
  [[nodiscard]] std::vector<Outgoing> rank_ended(int rank);
  [[nodiscard]] bool has_joined(Connection connection) const { return ranks_.contains(connection); }
  [[nodiscard]] std::size_t joined_count() const { return ranks_.size(); }

 private:
  struct Offer {
    Connection from = 0;
    std::string name;
    std::string value;
  };

  std::vector<Outgoing> hello(Connection from, const store::Request& request);
  std::vector<Outgoing> gather(Connection from, const store::Request& request);
  std::vector<Outgoing> finish_gather();
  std::vector<Outgoing> fail_all(const std::string& text);
  [[nodiscard]] store::Reply missing() const;
  [[nodiscard]] bool is_here(std::int32_t rank) const;

  std::int32_t size_;
  std::string token_;
  std::map<Connection, std::int32_t> ranks_;  // of those who have shown the token
  std::map<std::int32_t, Offer> offers_;      // to the gather in progress, by rank
  std::optional<std::string> failure_;
};

}  // namespace sifr::detail
