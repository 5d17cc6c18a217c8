#include "comm/detail/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sifr::detail {
namespace {

using store::Reply;
using store::ReplyKind;
using store::Request;
using store::RequestKind;

std::vector<Store::Outgoing> refuse(Store::Connection connection, std::string text) {
  return {{connection, {.kind = ReplyKind::kFailed, .text = std::move(text)}, true}};
}

/// In a time that does not tell how much of it is right.
bool is_same_secret(std::string_view given, std::string_view secret) noexcept {
  if (given.size() != secret.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned>(given[i] ^ secret[i]);
  return difference == 0;
}

std::string death_of(int rank) {
  return fmt::format("rank {} died: its process ended while the group was being made", rank);
}

}  // namespace

Store::Store(int size, std::string token) : size_(size), token_(std::move(token)) {}

std::vector<Store::Outgoing> Store::receive(Connection from, std::span<const std::byte> message) {
  const auto request = store::decode_request(message);
  if (!request)
    return refuse(from, "the message is malformed: is the peer another version of sifr?");
  if (request->kind == RequestKind::kHello) return hello(from, *request);
  if (!has_joined(from)) return refuse(from, "no hello came before the request");
  if (request->kind == RequestKind::kMissing) return {{from, missing(), false}};
  if (request->kind == RequestKind::kGather) return gather(from, *request);
  const std::int32_t rank = ranks_.at(from);
  ranks_.erase(from);  // what becomes of this process is no longer the store's affair
  offers_.erase(rank);
  if (request->kind == RequestKind::kBye) return {};
  return fail_all(request->text);
}

std::vector<Store::Outgoing> Store::hello(Connection from, const Request& request) {
  if (!is_same_secret(request.token, token_)) return refuse(from, "the token is not this job's");
  if (request.size != size_ || request.rank < 0 || request.rank >= size_) {
    return refuse(
        from,
        fmt::format(
            "rank {} of {} does not belong to this job of {}", request.rank, request.size, size_));
  }
  if (is_here(request.rank))
    return refuse(from, fmt::format("two processes say that they are rank {}", request.rank));
  ranks_[from] = request.rank;
  return {{from, {.kind = ReplyKind::kWelcome}, false}};
}

std::vector<Store::Outgoing> Store::gather(Connection from, const Request& request) {
  if (failure_) return refuse(from, *failure_);
  const std::int32_t rank = ranks_.at(from);
  if (offers_.contains(rank)) return refuse(from, "the rank is in a gather already");
  offers_[rank] = {from, request.name, request.value};
  return static_cast<std::int32_t>(offers_.size()) == size_ ? finish_gather()
                                                            : std::vector<Outgoing>{};
}

std::vector<Store::Outgoing> Store::finish_gather() {
  Reply reply = {.kind = ReplyKind::kValues};
  for (const auto& [rank, offer] : offers_) {
    if (offer.name != offers_.at(0).name) {
      return fail_all(fmt::format(
          "rank 0 is at \"{}\", rank {} at \"{}\"", offers_.at(0).name, rank, offer.name));
    }
    reply.values.push_back(offer.value);
  }
  std::vector<Outgoing> replies;
  for (const auto& [rank, offer] : offers_)
    replies.push_back({offer.from, reply, false});
  offers_.clear();
  return replies;
}

std::vector<Store::Outgoing> Store::close(Connection connection) {
  const auto joined = ranks_.find(connection);
  if (joined == ranks_.end()) return {};
  const std::int32_t rank = joined->second;
  ranks_.erase(joined);
  offers_.erase(rank);
  return fail_all(death_of(rank));
}

std::vector<Store::Outgoing> Store::rank_ended(int rank) {
  if (is_here(rank)) return {};  // its connection will tell, after its last words
  return fail_all(death_of(rank));
}

bool Store::is_here(std::int32_t rank) const {
  return std::any_of(
      ranks_.begin(), ranks_.end(), [rank](const auto& joined) { return joined.second == rank; });
}

std::vector<Store::Outgoing> Store::fail_all(const std::string& text) {
  if (!failure_) failure_ = text;
  std::vector<Outgoing> replies;
  for (const auto& [rank, offer] : offers_)
    replies.push_back({offer.from, {.kind = ReplyKind::kFailed, .text = *failure_}, true});
  offers_.clear();
  return replies;
}

Reply Store::missing() const {
  Reply reply = {.kind = ReplyKind::kMissing};
  for (std::int32_t rank = 0; rank < size_; ++rank) {
    if (!offers_.contains(rank)) reply.ranks.push_back(rank);
  }
  return reply;
}

}  // namespace sifr::detail
