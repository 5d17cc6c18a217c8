#include "comm/detail/store.hpp"

#include "comm/detail/store_client.hpp"
#include "comm/detail/store_server.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace sifr;
using namespace sifr::detail;
using Catch::Matchers::Contains;

namespace {

std::string token() {
  return std::string(32, 'a');
}

std::vector<Store::Outgoing> send(Store& store,
                                  Store::Connection from,
                                  const store::Request& request) {
  const std::string message = store::encode(request);
  return store.receive(from, std::as_bytes(std::span(message)));
}

store::Request hello(int rank, int size = 2, const std::string& secret = token()) {
  return {.kind = store::RequestKind::kHello, .token = secret, .rank = rank, .size = size};
}

store::Request offer(const std::string& name, const std::string& value) {
  return {.kind = store::RequestKind::kGather, .name = name, .value = value};
}

bool is_refused(const std::vector<Store::Outgoing>& replies, const std::string& text) {
  return replies.size() == 1 && replies[0].then_close &&
         replies[0].reply.kind == store::ReplyKind::kFailed &&
         replies[0].reply.text.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a gather gives every rank everybody's bytes, again and again", "[comm]") {
  Store store(2, token());
  CHECK(send(store, 7, hello(1)).at(0).reply.kind == store::ReplyKind::kWelcome);
  CHECK(send(store, 8, hello(0)).at(0).reply.kind == store::ReplyKind::kWelcome);
  for (int i = 0; i < 2; ++i) {
    CHECK(send(store, 7, offer("meet", "one")).empty());
    const auto replies = send(store, 8, offer("meet", "zero"));
    REQUIRE(replies.size() == 2);
    for (const auto& reply : replies)
      CHECK(reply.reply.values == std::vector<std::string>{"zero", "one"});
  }
}

TEST_CASE("the store knows who is missing", "[comm]") {
  Store store(3, token());
  (void)send(store, 1, hello(1, 3));
  (void)send(store, 1, offer("meet", ""));
  CHECK(send(store, 1, {.kind = store::RequestKind::kMissing}).at(0).reply.ranks ==
        std::vector<std::int32_t>{0, 2});
}

TEST_CASE("strangers and wrong ranks are refused", "[comm]") {
  Store store(2, token());
  CHECK(is_refused(send(store, 1, offer("meet", "x")), "no hello"));
  CHECK(is_refused(send(store, 1, hello(0, 2, "guess")), "token"));
  CHECK(is_refused(send(store, 1, hello(0, 3)), "does not belong"));
  CHECK(is_refused(send(store, 1, hello(2)), "does not belong"));
  CHECK(is_refused(store.receive(1, {}), "malformed"));
  (void)send(store, 1, hello(0));
  CHECK(is_refused(send(store, 2, hello(0)), "two processes say that they are rank 0"));
}

TEST_CASE("whoever ends without a goodbye ends the gather", "[comm]") {
  Store store(2, token());
  (void)send(store, 1, hello(0));
  (void)send(store, 2, hello(1));
  (void)send(store, 1, offer("meet", ""));
  CHECK(is_refused(store.close(2), "rank 1 died"));
  CHECK(is_refused(send(store, 1, offer("meet", "")), "rank 1 died"));
}

TEST_CASE(
    "a rank whose process ends before it comes ends the gather, but not before its last words",
    "[comm]") {
  Store store(2, token());
  (void)send(store, 1, hello(0));
  (void)send(store, 1, offer("meet", ""));
  CHECK(is_refused(store.rank_ended(1), "rank 1 died"));
  Store failing(2, token());
  (void)send(failing, 1, hello(0));
  (void)send(failing, 2, hello(1));
  (void)send(failing, 1, offer("meet", ""));
  CHECK(failing.rank_ended(1).empty());
  CHECK(is_refused(send(failing, 2, {.kind = store::RequestKind::kFail, .text = "no memory"}),
                   "no memory"));
  CHECK(failing.rank_ended(1).empty());
  CHECK(is_refused(send(failing, 1, offer("meet", "")), "no memory"));
}

TEST_CASE("whoever fails is quoted to the others, and a goodbye is no failure", "[comm]") {
  Store failing(2, token());
  (void)send(failing, 1, hello(0));
  (void)send(failing, 2, hello(1));
  (void)send(failing, 1, offer("meet", ""));
  CHECK(is_refused(send(failing, 2, {.kind = store::RequestKind::kFail, .text = "no memory"}),
                   "no memory"));
  Store leaving(2, token());
  (void)send(leaving, 1, hello(0));
  CHECK(send(leaving, 1, {.kind = store::RequestKind::kBye}).empty());
  CHECK(leaving.close(1).empty());
}

TEST_CASE("ranks at different gathers are told both names", "[comm]") {
  Store store(2, token());
  (void)send(store, 1, hello(0));
  (void)send(store, 2, hello(1));
  (void)send(store, 1, offer("here", ""));
  const auto replies = send(store, 2, offer("there", ""));
  REQUIRE(replies.size() == 2);
  CHECK_THAT(replies[0].reply.text, Contains("rank 0 is at \"here\", rank 1 at \"there\""));
}

TEST_CASE("every message survives its encoding, and every cut one is refused", "[comm]") {
  const std::vector<store::Request> requests = {
      hello(3, 9), offer("name", std::string("\0x", 2)), {.kind = store::RequestKind::kMissing}};
  for (const store::Request& request : requests) {
    const std::string message = store::encode(request);
    const auto bytes = std::as_bytes(std::span(message));
    REQUIRE(store::decode_request(bytes));
    CHECK(store::encode(*store::decode_request(bytes)) == message);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      CHECK_FALSE(store::decode_request(bytes.first(length)));
  }
  const store::Reply values = {.kind = store::ReplyKind::kValues, .values = {"a", "", "ccc"}};
  const std::string message = store::encode(values);
  CHECK(store::decode_reply(std::as_bytes(std::span(message)))->values == values.values);
}

TEST_CASE("a client finds the store, and hears why it is refused", "[comm]") {
  const StoreServer server(1, token(), 0);
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  StoreClient client(address, token(), {0, 1}, {});
  CHECK(client.gather("alone", "me") == std::vector<std::string>{"me"});
  client.leave();
  CHECK_THROWS_WITH(StoreClient(address, "wrong", {0, 1}, {}),
                    Contains("the token is not this job's"));
  CHECK_THROWS_WITH(StoreClient("127.0.0.1:1", token(), {0, 1}, {}),
                    Contains("finds no store at \"127.0.0.1:1\""));
  CHECK_THROWS_WITH(StoreClient("nowhere", token(), {0, 1}, {}),
                    Contains("finds no store at \"nowhere\""));
}
