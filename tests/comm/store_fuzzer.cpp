// Feeds a store with messages of strangers: each input is a list of (connection, length, bytes).
#include "comm/detail/store.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sifr::detail::Store store(2, "token");
  std::span<const std::byte> left = std::as_bytes(std::span(data, size));
  while (left.size() >= 2) {
    const auto connection = static_cast<std::uint64_t>(left[0]) % 4;
    const std::size_t length = std::min(left.size() - 2, static_cast<std::size_t>(left[1]));
    if (left[1] == std::byte{0}) (void)store.close(connection);
    for (const auto& outgoing : store.receive(connection, left.subspan(2, length))) {
      const std::string reply = sifr::detail::store::encode(outgoing.reply);
      if (!sifr::detail::store::decode_reply(std::as_bytes(std::span(reply)))) __builtin_trap();
    }
    (void)sifr::detail::store::decode_reply(left.subspan(2, length));
    left = left.subspan(2 + length);
  }
  return 0;
}
