#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sifr::detail {

/// The messages between a rank and the store where the ranks of a job meet. On the wire each stands
/// behind its length (32 bits, little-endian, as all numbers). Whatever comes in is a stranger's
/// until it has shown the token.
namespace store {

inline constexpr std::size_t kMaxReply = 1 << 20;  // bytes
inline constexpr std::size_t kMaxRequest = 8192;
inline constexpr std::size_t kMaxGreeting = 256;  // a request before the token has been shown

enum class RequestKind : std::uint8_t { kHello, kGather, kMissing, kFail, kBye };

struct Request {
  RequestKind kind = RequestKind::kHello;
  std::string token = {};  // kHello
  std::int32_t rank = -1;  // kHello
  std::int32_t size = 0;   // kHello
  std::string name = {};   // kGather: must be the same on all ranks
  std::string text = {};   // kFail: what the others are told
  std::string value = {};  // kGather: this rank's
};

enum class ReplyKind : std::uint8_t { kWelcome, kValues, kMissing, kFailed };

struct Reply {
  ReplyKind kind = ReplyKind::kWelcome;
  std::vector<std::string> values = {};  // kValues: every rank's, in rank order
  std::vector<std::int32_t> ranks = {};  // kMissing: who has not come to the gather
  std::string text = {};                 // kFailed
};

[[nodiscard]] std::string encode(const Request& request);
[[nodiscard]] std::string encode(const Reply& reply);
/// Nothing if the bytes are not exactly one such message.
[[nodiscard]] std::optional<Request> decode_request(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Reply> decode_reply(std::span<const std::byte> bytes);

[[nodiscard]] std::string encode_length(std::size_t length);
[[nodiscard]] std::size_t decode_length(std::span<const std::byte, 4> bytes) noexcept;

}  // namespace store
}  // namespace sifr::detail
