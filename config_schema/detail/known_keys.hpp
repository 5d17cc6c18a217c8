#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sifr::detail {

/// What sifr makes of a key of DeepSpeed's that it does not use, when its value is not the neutral
/// one.
enum class Verdict : std::uint8_t {
  kQuiet,         ///< nothing: it counts only beside a key that is refused
  kNoEffect,      ///< a notice: training is as without it
  kNotSupported,  ///< an error: training would not be what the file says
};

enum class KeyType : std::uint8_t { kBool, kInteger, kNumber, kText, kList, kAny, kBlock };

/// One key that DeepSpeed documents and sifr does not use.
struct KnownKey {
  std::string_view pointer;  ///< JSON pointer
  KeyType type;
  /// The value at which it does nothing, as JSON text; null always does nothing. Of a block: the
  /// key in it that switches it on, "" if each key counts by itself, "*" if the block's presence
  /// does.
  std::string_view neutral;
  Verdict verdict;
  std::string_view text;  ///< what it is, or what to do instead

  [[nodiscard]] std::string_view parent() const { return pointer.substr(0, pointer.rfind('/')); }
  [[nodiscard]] std::string_view key() const { return pointer.substr(pointer.rfind('/') + 1); }
};

[[nodiscard]] std::span<const KnownKey> known_training_keys();
[[nodiscard]] std::span<const KnownKey> known_zero_keys();
[[nodiscard]] std::span<const KnownKey> known_systems_keys();

/// The three tables as one; children follow their block.
[[nodiscard]] std::vector<KnownKey> known_keys();
/// Null if the tables do not have it.
[[nodiscard]] const KnownKey* find_known_key(std::string_view pointer);

}  // namespace sifr::detail
