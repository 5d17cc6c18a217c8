#include "comm/meeting_point.hpp"

#include "comm/detail/store_server.hpp"
#include "comm/detail/unix_socket.hpp"
#include "device/detail/check.hpp"

#include <fmt/format.h>

namespace sifr {

struct MeetingPoint::State {
  State(int size, std::uint16_t port) : ranks(size), server(size, token, port) {}

  int ranks;
  std::string token = detail::random_hex();
  detail::StoreServer server;
};

MeetingPoint::MeetingPoint(int ranks, std::uint16_t port) {
  SIFR_REQUIRE(UsageError, ranks >= 1, "a job of {} ranks cannot be started", ranks);
  state_ = std::make_unique<State>(ranks, port);
}

MeetingPoint::~MeetingPoint() = default;

std::vector<std::string> MeetingPoint::environment(int rank) const {
  return {fmt::format("SIFR_RANK={}", rank),
          fmt::format("SIFR_WORLD_SIZE={}", state_->ranks),
          fmt::format("SIFR_LOCAL_RANK={}", rank),
          fmt::format("SIFR_LOCAL_WORLD_SIZE={}", state_->ranks),
          fmt::format("SIFR_STORE=127.0.0.1:{}", port()),
          "SIFR_STORE_TOKEN=" + state_->token};
}

void MeetingPoint::rank_ended(int rank) {
  state_->server.rank_ended(rank);
}

std::uint16_t MeetingPoint::port() const noexcept {
  return state_->server.port();
}

}  // namespace sifr
