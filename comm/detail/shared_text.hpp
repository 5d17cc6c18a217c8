#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sifr::detail {

/// Up to 159 bytes of text that one rank writes and any other may read at any time, also across
/// processes. A reader that meets a writer may see a mixture of two texts: it is for messages only.
class SharedText {
 public:
  static constexpr std::size_t kCapacity = 159;

  void store(std::string_view text) noexcept {
    std::array<char, sizeof(words_)> bytes = {};
    std::copy_n(text.data(), std::min(text.size(), kCapacity), bytes.data());
    for (std::size_t i = 0; i < words_.size(); ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i * sizeof(word), sizeof(word));
      words_[i].store(word, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] std::string load() const {
    std::array<char, sizeof(words_) + 1> bytes = {};
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t word = words_[i].load(std::memory_order_relaxed);
      std::memcpy(bytes.data() + i * sizeof(word), &word, sizeof(word));
    }
    return bytes.data();
  }

 private:
  std::array<std::atomic<std::uint64_t>, 20> words_ = {};
};

}  // namespace sifr::detail
