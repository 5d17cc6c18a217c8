#include "comm/detail/store_server.hpp"

#include "comm/communicator.hpp"
#include "comm/detail/quiet_thread.hpp"
#include "comm/detail/store.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace sifr::detail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kPauseAfterError = std::chrono::milliseconds(100);

/// One connection: reads a message, hands it over, writes what is queued. Ends by itself if it has
/// not joined the store in time.
class Session : public std::enable_shared_from_this<Session> {
 public:
  struct Handlers {
    std::function<void(std::span<const std::byte>)> message;
    std::function<void()> closed;
    std::function<bool()> has_joined;
  };

  Session(tcp::socket socket, Handlers handlers)
      : timer_(socket.get_executor()), socket_(std::move(socket)), handlers_(std::move(handlers)) {}

  void begin(std::chrono::milliseconds patience) {
    timer_.expires_after(patience);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error && !self->handlers_.has_joined()) self->end();
    });
    read();
  }

  void send(const store::Reply& reply, bool then_close) {
    const std::string message = store::encode(reply);
    queue_.push_back({store::encode_length(message.size()) + message, then_close});
    if (queue_.size() == 1) write();
  }

 private:
  struct Queued {
    std::string bytes;
    bool then_close;
  };

  void read() {
    asio::async_read(
        socket_, asio::buffer(length_), [self = shared_from_this()](error_code error, std::size_t) {
          const std::size_t length = store::decode_length(self->length_);
          const std::size_t longest =
              self->handlers_.has_joined() ? store::kMaxRequest : store::kMaxGreeting;
          if (error || length > longest) return self->end();
          self->read_body(length);
        });
  }

  void read_body(std::size_t length) {
    body_.resize(length);
    asio::async_read(
        socket_, asio::buffer(body_), [self = shared_from_this()](error_code error, std::size_t) {
          if (error) return self->end();
          self->handlers_.message(self->body_);
          self->read();
        });
  }

  void write() {
    const auto written = [self = shared_from_this()](error_code error, std::size_t) {
      if (error || self->queue_.front().then_close) return self->end();
      self->queue_.pop_front();
      if (!self->queue_.empty()) self->write();
    };
    asio::async_write(socket_, asio::buffer(queue_.front().bytes), written);
  }

  void end() {
    error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
    if (!std::exchange(has_ended_, true)) handlers_.closed();
  }

  asio::steady_timer timer_;
  tcp::socket socket_;
  Handlers handlers_;
  std::array<std::byte, 4> length_ = {};
  std::vector<std::byte> body_;
  std::deque<Queued> queue_;
  bool has_ended_ = false;
};

tcp::acceptor listen(asio::io_context& context, std::uint16_t port) {
  tcp::acceptor acceptor(context);
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
  error_code error;
  acceptor.open(endpoint.protocol());
  acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw CommError(fmt::format("port {} cannot be used for the ranks to meet: {}; name another "
                                "one, or none to take a free one",
                                port,
                                error.message()),
                    -1);
  }
  return acceptor;
}

CommError no_store(const std::string& reason) {
  return {
      fmt::format("the system refuses the store where the ranks meet: {} (ulimit -n, ulimit -u)",
                  reason),
      -1};
}

}  // namespace

struct StoreServer::Service {
  Service(int size, const std::string& token, std::uint16_t port, const StoreBounds& limits)
      : bounds(limits), store(size, token), acceptor(listen(context, port)), pause(context) {
    accept();
    thread = start_quiet_thread("sifr-store", [this] { context.run(); });
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() {
    context.stop();
    thread.join();
  }

  /// Connections beyond the bound wait until the system hands them out, in the order of their
  /// coming.
  void accept() {
    if (is_accepting || sessions.size() >= store.joined_count() + bounds.strangers) return;
    is_accepting = true;
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return accept_later();  // no descriptor is free, say: at once it would be the same
      is_accepting = false;
      start_session(std::move(socket));
      accept();
    });
  }

  void accept_later() {
    pause.expires_after(kPauseAfterError);
    pause.async_wait([this](error_code error) {
      if (error) return;
      is_accepting = false;
      accept();
    });
  }

  void start_session(tcp::socket socket) {
    const Store::Connection id = ++last_connection;
    const auto closed = [this, id] {
      sessions.erase(id);
      deliver(store.close(id));
    };
    const auto session = std::make_shared<Session>(
        std::move(socket),
        Session::Handlers{
            [this, id](std::span<const std::byte> message) { deliver(store.receive(id, message)); },
            closed,
            [this, id] { return store.has_joined(id); }});
    sessions[id] = session;
    session->begin(bounds.patience);
  }

  void deliver(const std::vector<Store::Outgoing>& messages) {
    for (const Store::Outgoing& message : messages) {
      const auto session = sessions.find(message.to);
      if (session != sessions.end()) session->second->send(message.reply, message.then_close);
    }
    accept();  // a stranger may have joined or gone
  }

  StoreBounds bounds;
  asio::io_context context;
  Store store;
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  bool is_accepting = false;
  std::map<Store::Connection, std::shared_ptr<Session>> sessions;
  Store::Connection last_connection = 0;
  std::thread thread;
};

StoreServer::StoreServer(int size,
                         const std::string& token,
                         std::uint16_t port,
                         const StoreBounds& bounds) try
    : service_(std::make_unique<Service>(size, token, port, bounds)) {
} catch (const boost::system::system_error& error) {
  throw no_store(error.code().message());
} catch (const std::system_error& error) {
  throw no_store(error.code().message());
}

StoreServer::~StoreServer() = default;

void StoreServer::rank_ended(int rank) {
  asio::post(service_->context,
             [this, rank] { service_->deliver(service_->store.rank_ended(rank)); });
}

std::uint16_t StoreServer::port() const noexcept {
  error_code ignored;
  return service_->acceptor.local_endpoint(ignored).port();
}

}  // namespace sifr::detail
