#include "engine/detail/file.hpp"
#include "engine/detail/safetensors_header.hpp"
#include "engine/safetensors.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace sifr {
namespace {

/// The header of the declared tensors and the file's first bytes.
std::pair<detail::SafetensorsHeader, std::string> header_of(
    const std::vector<SafetensorsWriter::Declared>& tensors,
    const std::map<std::string, std::string>& metadata) {
  detail::SafetensorsHeader header;
  header.metadata = metadata;
  std::set<std::string_view> names = {"__metadata__"};
  try {
    for (const auto& tensor : tensors) {
      if (!names.insert(tensor.name).second)
        throw UsageError(fmt::format("SafetensorsWriter: the name '{}' is taken", tensor.name));
      header.entries.push_back({.name = tensor.name,
                                .dtype = std::string(safetensors_name(tensor.dtype)),
                                .shape = tensor.shape,
                                .count = detail::safetensors_count(tensor.name, tensor.shape)});
    }
    std::string text = detail::format_safetensors_header(header);
    return {std::move(header), std::move(text)};
  } catch (const detail::MalformedHeader& error) {
    throw UsageError(fmt::format("SafetensorsWriter: the declaration {}", error.what()));
  }
}

}  // namespace

struct SafetensorsWriter::State {
  State(const std::filesystem::path& path, std::int64_t bytes) : file(path, bytes) {}
  /// Steps over finished and empty tensors, to the one whose turn it is.
  void advance() {
    while (current < tensors.size() && written == tensors[current].count) {
      ++current;
      written = 0;
    }
  }

  detail::NewFile file;
  std::vector<detail::SafetensorsEntry> tensors;
  std::size_t current = 0;
  std::int64_t written = 0;  // elements of the current tensor
};

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     const std::vector<Declared>& tensors,
                                     const std::map<std::string, std::string>& metadata) {
  auto [header, text] = header_of(tensors, metadata);
  const std::int64_t data_bytes = header.entries.empty() ? 0 : header.entries.back().end;
  state_ = std::make_unique<State>(path, static_cast<std::int64_t>(text.size()) + data_bytes);
  state_->tensors = std::move(header.entries);
  state_->file.append(std::as_bytes(std::span(text)));
  state_->advance();
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(std::string_view name, std::int64_t first, ConstView values) {
  if (values.count == 0) return;
  if (state_->current == state_->tensors.size())
    throw UsageError(
        fmt::format("SafetensorsWriter::write: '{}' comes after the last tensor's end", name));
  const auto& expected = state_->tensors[state_->current];
  if (name != expected.name || first != state_->written) {
    throw UsageError(fmt::format(
        "SafetensorsWriter::write: '{}' from element {}, but the turn is '{}' from element {}",
        name,
        first,
        expected.name,
        state_->written));
  }
  if (safetensors_name(values.dtype) != expected.dtype || values.count > expected.count - first) {
    throw UsageError(
        fmt::format("SafetensorsWriter::write: {} elements of {} for '{}', which has {} more of {}",
                    values.count,
                    safetensors_name(values.dtype),
                    name,
                    expected.count - first,
                    expected.dtype));
  }
  state_->file.append({values.data, static_cast<std::size_t>(values.bytes())});
  state_->written += values.count;
  state_->advance();
}

void SafetensorsWriter::finish() {
  if (state_->current != state_->tensors.size()) {
    const auto& missing = state_->tensors[state_->current];
    throw UsageError(fmt::format("SafetensorsWriter::finish: '{}' has {} of its {} elements",
                                 missing.name,
                                 state_->written,
                                 missing.count));
  }
  state_->file.commit();
}

}  // namespace sifr
