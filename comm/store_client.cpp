#include "comm/detail/store_client.hpp"

#include "comm/detail/unix_socket.hpp"
#include "device/detail/log.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>
#include <span>
#include <utility>

namespace sifr::detail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

struct StoreClient::Connection {
  asio::io_context context;
  tcp::socket socket{context};
};

/// How long to wait for one reply: asks who is missing whenever it is time to report, and gives up
/// at the deadline.
class StoreClient::Patience {
 public:
  Patience(const StoreClient& client, std::function<void()> ask_who_is_missing)
      : client_(client),
        ask_(std::move(ask_who_is_missing)),
        interval_(std::min(client.options_.report_after, client.options_.timeout / 4)) {}

  void keep_waiting() {
    const auto now = steady_clock::now();
    if (!awaits_answer_ && now >= next_question_) {
      awaits_answer_ = true;
      next_question_ = now + interval_;
      ask_();
    }
    if (now < start_ + client_.options_.timeout) return;
    throw CommTimeout(
        fmt::format(
            "rank {} waited {:.1f} s at the store {} for {}",
            client_.member_.rank,
            seconds(client_.options_.timeout),
            client_.address_,
            missing_.empty() ? "an answer" : fmt::format("rank {}", fmt::join(missing_, ", "))),
        missing_.empty() ? -1 : missing_.front());
  }

  void note_missing(const std::vector<std::int32_t>& ranks) {
    awaits_answer_ = false;
    if (ranks == missing_) return;  // told before
    missing_ = ranks;
    if (ranks.empty() || client_.options_.report_after >= client_.options_.timeout) return;
    log(client_.options_.log,
        client_.member_.rank,
        "comm",
        Level::kWarning,
        "the group is being made; waiting for rank {}; gives up after {:.1f} s",
        fmt::join(ranks, ", "),
        seconds(client_.options_.timeout));
  }

  [[nodiscard]] bool awaits_answer() const noexcept { return awaits_answer_; }

 private:
  const StoreClient& client_;
  std::function<void()> ask_;
  std::chrono::milliseconds interval_;
  steady_clock::time_point start_ = steady_clock::now();
  steady_clock::time_point next_question_ = start_ + interval_;
  bool awaits_answer_ = false;
  std::vector<std::int32_t> missing_;
};

StoreClient::StoreClient(const std::string& address,
                         const std::string& token,
                         Member member,
                         const GroupOptions& options)
    : address_(address),
      member_(member),
      options_(options),
      connection_(std::make_unique<Connection>()) {
  const std::size_t colon = address.rfind(':');
  error_code error;
  tcp::resolver resolver(connection_->context);
  const auto endpoints =
      colon == std::string::npos
          ? tcp::resolver::results_type{}
          : resolver.resolve(address.substr(0, colon), address.substr(colon + 1), error);
  if (!error) asio::connect(connection_->socket, endpoints, error);
  if (error || endpoints.empty()) {
    throw CommError(
        fmt::format("rank {} finds no store at \"{}\" ({}): has the launcher or rank 0 ended?",
                    member.rank,
                    address,
                    error ? error.message() : "no address"),
        -1);
  }
  send({.kind = store::RequestKind::kHello,
        .token = token,
        .rank = member.rank,
        .size = member.size});
  Patience patience(*this, [] {});
  (void)receive(patience);
}

StoreClient::~StoreClient() = default;

void StoreClient::send(const store::Request& request) {
  const std::string message = store::encode(request);
  error_code error;
  asio::write(
      connection_->socket, asio::buffer(store::encode_length(message.size()) + message), error);
  // A lost connection shows at the next receive, which may still find the reason.
}

store::Reply StoreClient::receive(Patience& patience) {
  const auto read = [&](std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      wait_readable(connection_->socket.native_handle(), [&] { patience.keep_waiting(); });
      error_code error;
      const std::size_t count =
          connection_->socket.read_some(asio::buffer(bytes.data(), bytes.size()), error);
      if (error)
        throw CommError(
            fmt::format("the store {} has closed: the launcher or rank 0 ended", address_), -1);
      bytes = bytes.subspan(count);
    }
  };
  std::array<std::byte, 4> length = {};
  read(length);
  std::vector<std::byte> message(std::min(store::decode_length(length), store::kMaxReply));
  read(message);
  auto reply = store::decode_reply(message);
  if (!reply)
    throw CommError(fmt::format("what answers at {} is no store of this version of sifr", address_),
                    -1);
  if (reply->kind == store::ReplyKind::kFailed) throw CommError(reply->text, -1);
  return std::move(*reply);
}

std::vector<std::string> StoreClient::gather(const std::string& name, const std::string& value) {
  send({.kind = store::RequestKind::kGather, .name = name, .value = value});
  Patience patience(*this, [this] { send({.kind = store::RequestKind::kMissing}); });
  for (;;) {
    store::Reply reply = receive(patience);
    if (reply.kind == store::ReplyKind::kMissing) {
      patience.note_missing(reply.ranks);
      continue;
    }
    if (patience.awaits_answer())
      (void)receive(patience);  // to a question that has answered itself
    return std::move(reply.values);
  }
}

void StoreClient::fail(const std::string& text) {
  send({.kind = store::RequestKind::kFail, .text = text.substr(0, store::kMaxRequest / 2)});
}

void StoreClient::leave() {
  send({.kind = store::RequestKind::kBye});
}

}  // namespace sifr::detail
