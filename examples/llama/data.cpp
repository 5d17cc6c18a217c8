#include "examples/llama/data.hpp"

#include "engine/io_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

namespace llama {
namespace {

constexpr std::int64_t kHeaderBytes = 256 * sizeof(std::int32_t);
constexpr std::int64_t kPiece = 4096;  // tokens looked at at once
constexpr std::int64_t kMostTokenBytes = 4;

struct Format {
  std::int32_t magic;
  std::int32_t version;        // that llm.c writes
  std::int32_t older_version;  // of the same layout, which other programs write
  std::int64_t token_bytes;
};
constexpr std::array kFormats = {Format{20240520, 1, 1, 2}, Format{20240801, 7, 1, 4}};

constexpr const char* kHowToWriteOne =
    "llm.c's format is 256 int32 (20240520, 1, count for uint16 tokens; 20240801, 7, count for "
    "uint32), then the tokens";

// Calls f(first, tokens) for consecutive pieces of the whole file.
template <class F>
void for_each_piece(const TokenFile& file, F f) {
  std::array<std::int32_t, kPiece> tokens = {};
  for (std::int64_t first = 0; first < file.count(); first += kPiece) {
    const auto length = static_cast<std::size_t>(std::min(kPiece, file.count() - first));
    const auto piece = std::span(tokens).first(length);
    file.read(first, piece);
    f(first, piece);
  }
}

template <class Stored>
void widen(const std::byte* source, std::span<std::int32_t> tokens) {
  for (std::int32_t& token : tokens) {
    Stored stored;
    std::memcpy(&stored, source, sizeof(stored));
    // Beyond int32 no vocabulary reaches; such a token becomes a negative one, which none has.
    token = static_cast<std::int32_t>(stored);
    source += sizeof(stored);
  }
}

void widen(const std::byte* source, std::int64_t token_bytes, std::span<std::int32_t> tokens) {
  switch (token_bytes) {
    case 1:
      return widen<std::uint8_t>(source, tokens);
    case 2:
      return widen<std::uint16_t>(source, tokens);
    default:
      return widen<std::uint32_t>(source, tokens);
  }
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& path, std::int64_t vocab)
    : file_(path), count_(file_.bytes()) {
  if (count_ == 0) throw sifr::IoError(path, "is empty; it should hold text or tokens");
  read_header();
  const bool is_text = header_bytes_ == 0;
  if (is_text) check_text(vocab);
  vocab_ = vocab;
  if (!is_text) for_each_piece(*this, [](auto&&...) {});  // read() compares
}

void TokenFile::read_header() {
  std::array<std::int32_t, 3> words = {};
  if (count_ < static_cast<std::int64_t>(sizeof(words))) return;
  file_.read(0, std::as_writable_bytes(std::span(words)));
  const auto* format = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& candidate) {
    return candidate.magic == words[0];
  });
  if (format == kFormats.end()) return;
  if (words[1] != format->version && words[1] != format->older_version) {
    throw sifr::IoError(
        path(),
        fmt::format(
            "has version {} of the format {} in its header, and only version {} is known; {}",
            words[1],
            format->magic,
            format->version,
            kHowToWriteOne));
  }
  check_size(words[2], format->token_bytes);
  header_bytes_ = kHeaderBytes;
  token_bytes_ = format->token_bytes;
  count_ = words[2];
}

void TokenFile::check_size(std::int64_t count, std::int64_t token_bytes) const {
  const std::int64_t expected = kHeaderBytes + count * token_bytes;
  if (count < 0 || expected != count_) {
    throw sifr::IoError(path(),
                        fmt::format("has a header of {} tokens of {} bytes, which is a file of {} "
                                    "bytes, but it has {}; was it cut short?",
                                    count,
                                    token_bytes,
                                    expected,
                                    count_));
  }
}

void TokenFile::check_text(std::int64_t vocab) const {
  std::optional<std::int64_t> nul;
  for_each_piece(*this, [&](std::int64_t first, std::span<const std::int32_t> bytes) {
    const auto found = std::find(bytes.begin(), bytes.end(), 0);
    if (!nul && found != bytes.end()) nul = first + (found - bytes.begin());
  });
  if (path().extension() == ".bin" || nul) {
    const auto found = nul ? fmt::format("byte {} is 0", *nul) : "its name ends in .bin";
    throw sifr::IoError(
        path(),
        fmt::format("is neither text ({}) nor has it llm.c's header; {}", found, kHowToWriteOne));
  }
  if (vocab != kByteVocab) {
    throw sifr::IoError(path(),
                        fmt::format("is text, whose bytes are the tokens, which needs vocab=256, "
                                    "but the model has {}; tokenize it into a .bin; {}",
                                    vocab,
                                    kHowToWriteOne));
  }
}

void TokenFile::check_tokens(std::int64_t first, std::span<const std::int32_t> tokens) const {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab_) continue;
    throw sifr::IoError(path(),
                        fmt::format("holds token {} at place {}, but the model's vocabulary has "
                                    "{}; was it tokenized for another model?",
                                    static_cast<std::uint32_t>(tokens[i]),
                                    first + static_cast<std::int64_t>(i),
                                    vocab_));
  }
}

void TokenFile::read(std::int64_t first, std::span<std::int32_t> tokens) const {
  std::array<std::byte, kPiece* kMostTokenBytes> stored = {};
  while (!tokens.empty()) {
    const auto piece = tokens.first(std::min<std::size_t>(tokens.size(), kPiece));
    const auto bytes = piece.size() * static_cast<std::size_t>(token_bytes_);
    file_.read(header_bytes_ + first * token_bytes_, std::span(stored).first(bytes));
    widen(stored.data(), token_bytes_, piece);
    check_tokens(first, piece);
    first += static_cast<std::int64_t>(piece.size());
    tokens = tokens.subspan(piece.size());
  }
}

double unigram_entropy(const TokenFile& tokens, std::int64_t vocab) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(vocab));
  for_each_piece(tokens, [&](std::int64_t, std::span<const std::int32_t> piece) {
    for (const std::int32_t token : piece)
      ++counts[static_cast<std::size_t>(token)];
  });
  double entropy = 0;
  for (const std::int64_t count : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(tokens.count());
    if (count > 0) entropy -= share * std::log(share);
  }
  return entropy;
}

}  // namespace llama
