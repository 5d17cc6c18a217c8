#pragma once

#include "comm/detail/store_protocol.hpp"
#include "comm/group.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace sifr::detail {

/// One rank's connection to the store.
class StoreClient {
 public:
  struct Member {
    int rank = 0;
    int size = 1;
  };

  /// `address` is "host:port". Throws CommError if nobody listens there or the token is refused.
  StoreClient(const std::string& address,
              const std::string& token,
              Member member,
              const GroupOptions& options);
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;
  ~StoreClient();

  /// Every rank hands in `value` and gets everybody's in rank order. Reports who is missing after
  /// options.report_after; throws CommTimeout at options.timeout, CommError if a rank died or is at
  /// another name.
  [[nodiscard]] std::vector<std::string> gather(const std::string& name, const std::string& value);
  /// Tells every rank that is or comes to a gather why there will be no group.
  void fail(const std::string& text);
  /// From now on the end of this process is no failure of the store.
  void leave();

 private:
  struct Connection;
  class Patience;

  void send(const store::Request& request);
  [[nodiscard]] store::Reply receive(Patience& patience);

  std::string address_;
  Member member_;
  GroupOptions options_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace sifr::detail
