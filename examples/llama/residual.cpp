#include "examples/llama/residual.hpp"

#include "examples/llama/element.hpp"

namespace llama {
namespace {

template <class T>
LLAMA_INLINE void add(const T* x, const T* branch, std::int64_t count, T* sum) {
  for (std::int64_t i = 0; i < count; ++i)
    sum[i] = narrow<T>(widen(x[i]) + widen(branch[i]));
}

LLAMA_CLONES void add_fp32(const float* x, const float* branch, std::int64_t count, float* sum) {
  add(x, branch, count, sum);
}
LLAMA_CLONES void add_bf16(const bfloat16* x,
                           const bfloat16* branch,
                           std::int64_t count,
                           bfloat16* sum) {
  add(x, branch, count, sum);
}

}  // namespace

template <>
void add_residual(const float* x, const float* branch, std::int64_t count, float* sum) {
  add_fp32(x, branch, count, sum);
}
template <>
void add_residual(const bfloat16* x, const bfloat16* branch, std::int64_t count, bfloat16* sum) {
  add_bf16(x, branch, count, sum);
}

}  // namespace llama
