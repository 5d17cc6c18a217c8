#include "comm/detail/store_server.hpp"

#include "comm/communicator.hpp"
#include "comm/detail/store.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <deque>
#include <map>
#include <pthread.h>
#include <thread>
#include <utility>
#include <vector>

namespace sifr::detail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// One connection: reads a message, hands it over, writes what is queued.
class Session : public std::enable_shared_from_this<Session> {
 public:
  struct Handlers {
    std::function<void(std::span<const std::byte>)> message;
    std::function<void()> closed;
    std::function<std::size_t()> longest_message;
  };

  Session(tcp::socket socket, Handlers handlers)
      : socket_(std::move(socket)), handlers_(std::move(handlers)) {}

  void read() {
    asio::async_read(
        socket_, asio::buffer(length_), [self = shared_from_this()](error_code error, std::size_t) {
          const std::size_t length = store::decode_length(self->length_);
          if (error || length > self->handlers_.longest_message()) return self->end();
          self->read_body(length);
        });
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
    if (!std::exchange(has_ended_, true)) handlers_.closed();
  }

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

}  // namespace

struct StoreServer::Service {
  Service(int size, const std::string& token, std::uint16_t port)
      : store(size, token), acceptor(listen(context, port)) {
    accept();
    sigset_t all;
    sigset_t before;
    sigfillset(&all);  // signals are the program's: they go to its own threads
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread = std::thread([this] { context.run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread.native_handle(), "sifr-store");
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() {
    context.stop();
    thread.join();
  }

  void accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) start_session(std::move(socket));
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
            [this, id] {
              return store.has_joined(id) ? store::kMaxRequest : store::kMaxGreeting;
            }});
    sessions[id] = session;
    session->read();
  }

  void deliver(const std::vector<Store::Outgoing>& messages) {
    for (const Store::Outgoing& message : messages) {
      const auto session = sessions.find(message.to);
      if (session != sessions.end()) session->second->send(message.reply, message.then_close);
    }
  }

  asio::io_context context;
  Store store;
  tcp::acceptor acceptor;
  std::map<Store::Connection, std::shared_ptr<Session>> sessions;
  Store::Connection last_connection = 0;
  std::thread thread;
};

StoreServer::StoreServer(int size, const std::string& token, std::uint16_t port)
    : service_(std::make_unique<Service>(size, token, port)) {}

StoreServer::~StoreServer() = default;

std::uint16_t StoreServer::port() const noexcept {
  error_code ignored;
  return service_->acceptor.local_endpoint(ignored).port();
}

}  // namespace sifr::detail
