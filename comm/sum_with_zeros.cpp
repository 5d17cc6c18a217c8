#include "comm/detail/sum_with_zeros.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sifr::detail {
namespace {

constexpr std::int64_t kZeroBytes = 32768;
alignas(64) constexpr std::array<std::byte, kZeroBytes> kZeros = {};

}  // namespace

void sum_with_zeros(std::span<ConstView> inputs, View sum, kernels::Into into, Stream& stream) {
  const auto has_data = [](const ConstView& input) { return input.data != nullptr; };
  if (std::all_of(inputs.begin(), inputs.end(), has_data))
    return kernels::sum_in_order(inputs, sum, into, stream);
  const auto some = std::find_if(inputs.begin(), inputs.end(), has_data);
  const DType dtype = some == inputs.end() ? DType::kFloat32 : some->dtype;
  const std::int64_t longest = kZeroBytes / size_of(dtype);
  for (std::int64_t first = 0; first < sum.count; first += longest) {
    const std::int64_t count = std::min(longest, sum.count - first);
    for (ConstView& input : inputs) {
      const bool is_zero = input.data == nullptr || input.data == kZeros.data();
      input =
          is_zero ? ConstView{kZeros.data(), count, dtype} : ConstView{input.data, count, dtype};
    }
    kernels::sum_in_order(inputs, sum.slice(first, count), into, stream);
    for (ConstView& input : inputs) {
      if (input.data != kZeros.data()) input.data += count * size_of(dtype);
    }
  }
}

}  // namespace sifr::detail
