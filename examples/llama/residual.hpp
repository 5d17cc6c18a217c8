#pragma once

#include <cstdint>

namespace llama {

/// sum = x + branch, one rounding; sum may be x.
template <class T>
void add_residual(const T* x, const T* branch, std::int64_t count, T* sum);

}  // namespace llama
