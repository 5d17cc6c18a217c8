#include "comm/detail/store_protocol.hpp"

#include <algorithm>

namespace sifr::detail::store {
namespace {

class Writer {
 public:
  explicit Writer(std::uint8_t kind) { bytes_.push_back(static_cast<char>(kind)); }
  void number(std::uint32_t value) { bytes_ += encode_length(value); }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_ += value;
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes fields from the front. After a field that is not there, all fields are empty and
/// is_complete() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint8_t byte() {
    const auto field = take(1);
    return field.empty() ? std::uint8_t{0xFF} : static_cast<std::uint8_t>(field[0]);
  }
  std::uint32_t number() {
    const auto field = take(4);
    return field.empty() ? 0 : static_cast<std::uint32_t>(decode_length(field.first<4>()));
  }
  std::string text() {
    const auto field = take(number());
    return {reinterpret_cast<const char*>(field.data()), field.size()};
  }
  /// How many fields follow, each of at least `least` bytes.
  std::uint32_t count(std::size_t least) {
    const std::uint32_t value = number();
    is_valid_ = is_valid_ && value <= bytes_.size() / least;
    return is_valid_ ? value : 0;
  }
  [[nodiscard]] bool is_complete() const { return is_valid_ && bytes_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t length) {
    is_valid_ = is_valid_ && length <= bytes_.size();
    if (!is_valid_) return {};
    const auto field = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    return field;
  }
  std::span<const std::byte> bytes_;
  bool is_valid_ = true;
};

}  // namespace

std::string encode_length(std::size_t length) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<char>((length >> shift) & 0xFFU));
  return bytes;
}

std::size_t decode_length(std::span<const std::byte, 4> bytes) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i)
    length |= static_cast<std::size_t>(bytes[i]) << (8 * i);
  return length;
}

std::string encode(const Request& request) {
  Writer writer(static_cast<std::uint8_t>(request.kind));
  if (request.kind == RequestKind::kHello) {
    writer.text(request.token);
    writer.number(static_cast<std::uint32_t>(request.rank));
    writer.number(static_cast<std::uint32_t>(request.size));
  } else if (request.kind == RequestKind::kGather) {
    writer.text(request.name);
    writer.text(request.value);
  } else if (request.kind == RequestKind::kFail) {
    writer.text(request.text);
  }
  return writer.take();
}

std::string encode(const Reply& reply) {
  Writer writer(static_cast<std::uint8_t>(reply.kind));
  if (reply.kind == ReplyKind::kValues) {
    writer.number(static_cast<std::uint32_t>(reply.values.size()));
    for (const std::string& value : reply.values)
      writer.text(value);
  } else if (reply.kind == ReplyKind::kMissing) {
    writer.number(static_cast<std::uint32_t>(reply.ranks.size()));
    for (const std::int32_t rank : reply.ranks)
      writer.number(static_cast<std::uint32_t>(rank));
  } else if (reply.kind == ReplyKind::kFailed) {
    writer.text(reply.text);
  }
  return writer.take();
}

std::optional<Request> decode_request(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Request request;
  const std::uint8_t kind = reader.byte();
  if (kind > static_cast<std::uint8_t>(RequestKind::kBye)) return std::nullopt;
  request.kind = static_cast<RequestKind>(kind);
  if (request.kind == RequestKind::kHello) {
    request.token = reader.text();
    request.rank = static_cast<std::int32_t>(reader.number());
    request.size = static_cast<std::int32_t>(reader.number());
  } else if (request.kind == RequestKind::kGather) {
    request.name = reader.text();
    request.value = reader.text();
  } else if (request.kind == RequestKind::kFail) {
    request.text = reader.text();
  }
  if (!reader.is_complete()) return std::nullopt;
  return request;
}

std::optional<Reply> decode_reply(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Reply reply;
  const std::uint8_t kind = reader.byte();
  if (kind > static_cast<std::uint8_t>(ReplyKind::kFailed)) return std::nullopt;
  reply.kind = static_cast<ReplyKind>(kind);
  if (reply.kind == ReplyKind::kValues) {
    for (std::uint32_t left = reader.count(4); left > 0; --left)
      reply.values.push_back(reader.text());
  } else if (reply.kind == ReplyKind::kMissing) {
    for (std::uint32_t left = reader.count(4); left > 0; --left) {
      reply.ranks.push_back(static_cast<std::int32_t>(reader.number()));
    }
  } else if (reply.kind == ReplyKind::kFailed) {
    reply.text = reader.text();
  }
  if (!reader.is_complete()) return std::nullopt;
  return reply;
}

}  // namespace sifr::detail::store
