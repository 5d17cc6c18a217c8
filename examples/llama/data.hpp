#pragma once

#include "examples/llama/input_file.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>

namespace llama {

/// The vocabulary of a text, whose bytes are the tokens.
inline constexpr std::int64_t kByteVocab = 256;

/// The tokens of a file: a text, whose bytes are the tokens, or a .bin in llm.c's format (256 int32
/// of header, then uint16 or uint32 tokens). Checked completely at opening, and then readable from
/// several threads.
class TokenFile {
 public:
  /// Throws sifr::IoError that says what to change: an empty file, another version, a wrong size, a
  /// raw file of tokens without header, a text where the vocabulary is not the 256 bytes, a token ≥
  /// `vocab`.
  TokenFile(const std::filesystem::path& path, std::int64_t vocab);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return file_.path(); }
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// Tokens [first, first + tokens.size()), which the file had at opening. Throws sifr::IoError
  /// where somebody has cut it short or written other tokens since.
  void read(std::int64_t first, std::span<std::int32_t> tokens) const;

 private:
  void read_header();
  void check_size(std::int64_t count, std::int64_t token_bytes) const;
  void check_text(std::int64_t vocab) const;
  void check_tokens(std::int64_t first, std::span<const std::int32_t> tokens) const;

  InputFile file_;
  std::int64_t vocab_ = std::numeric_limits<std::int64_t>::max();  // until the format is known
  std::int64_t header_bytes_ = 0;                                  // none in a text
  std::int64_t token_bytes_ = 1;
  std::int64_t count_ = 0;
};

/// Natural logarithm's entropy of the single tokens' frequencies: the mean loss of a model that
/// knows how often each token comes, and nothing else.
[[nodiscard]] double unigram_entropy(const TokenFile& tokens, std::int64_t vocab);

}  // namespace llama
