#include "examples/llama/weights_file.hpp"

#include "engine/io_error.hpp"

#include <algorithm>
#include <array>

namespace llama {
namespace {

constexpr std::size_t kPiece = 16384;  // 16-bit elements read at once

std::int64_t data_bytes(std::span<const sifr::SafetensorsTensor> tensors) {
  std::size_t bytes = 0;  // tensors leave no hole
  for (const sifr::SafetensorsTensor& tensor : tensors)
    bytes += tensor.bytes.size();
  return static_cast<std::int64_t>(bytes);
}

template <class Stored>
void read_widened(const WeightsFile& file,
                  const sifr::SafetensorsTensor& tensor,
                  std::int64_t first,
                  std::span<float> values) {
  std::array<Stored, kPiece> stored;
  while (!values.empty()) {
    const auto piece = std::span(stored).first(std::min(values.size(), kPiece));
    file.read_bytes(
        tensor, first * static_cast<std::int64_t>(sizeof(Stored)), std::as_writable_bytes(piece));
    std::transform(
        piece.begin(), piece.end(), values.begin(), [](Stored one) { return sifr::to_float(one); });
    first += static_cast<std::int64_t>(piece.size());
    values = values.subspan(piece.size());
  }
}

}  // namespace

WeightsFile::WeightsFile(const std::filesystem::path& path) : header_(path), file_(path) {
  std::uint64_t header_bytes = 0;
  file_.read(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
  data_begin_ = static_cast<std::int64_t>(sizeof(header_bytes) + header_bytes);
  if (data_begin_ + data_bytes(tensors()) != file_.bytes())
    throw sifr::IoError(path, "has changed while it was opened");
}

void WeightsFile::read_bytes(const sifr::SafetensorsTensor& tensor,
                             std::int64_t first,
                             std::span<std::byte> bytes) const {
  const std::int64_t place = tensor.bytes.data() - tensors().front().bytes.data();
  file_.read(data_begin_ + place + first, bytes);
}

void WeightsFile::read(const sifr::SafetensorsTensor& tensor,
                       std::int64_t first,
                       std::span<float> values) const {
  switch (sifr::dtype_from_safetensors(tensor.dtype).value()) {
    case sifr::DType::kFloat32:
      return read_bytes(
          tensor, first * sifr::size_of(sifr::DType::kFloat32), std::as_writable_bytes(values));
    case sifr::DType::kBFloat16:
      return read_widened<sifr::bfloat16>(*this, tensor, first, values);
    case sifr::DType::kFloat16:
      return read_widened<sifr::float16>(*this, tensor, first, values);
  }
}

}  // namespace llama
