#pragma once

#include "./clones.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) && !defined(__CUDACC__)
#include <xmmintrin.h>
#define SIFR_HAS_STORES_PAST_CACHES 1
#endif

/// Results that the caches would not keep until they are read. An ordinary store first reads the
/// line that it overwrites, and pushes another one out; a store past the caches does neither.
namespace sifr::detail {

inline constexpr std::int64_t kCacheLine = 64;  // bytes

/// The line at `to` becomes `line`. Both lie on a line.
SIFR_INLINE void store_past_caches(const float* line, float* to) {
#ifdef SIFR_HAS_STORES_PAST_CACHES
  for (int i = 0; i < 16; i += 4)
    _mm_stream_ps(to + i, _mm_load_ps(line + i));
#else
  std::memcpy(to, line, kCacheLine);
#endif
}

/// Such stores are ordered with others, as other threads see them, only by this.
SIFR_INLINE void end_stores_past_caches() {
#ifdef SIFR_HAS_STORES_PAST_CACHES
  _mm_sfence();
#endif
}

/// Has compute(first, length, to) write elements [first, first + length) of `out` to `to`, for
/// stretches that make up [0, count): whole lines of `out` on their way past the caches, what is
/// left of its first and last line in place.
template <class T, class F>
SIFR_INLINE void write_past_caches(T* out, std::int64_t count, const F& compute) {
  constexpr std::int64_t kLength = kCacheLine / static_cast<std::int64_t>(sizeof(T));
  const auto into_line =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out) % kCacheLine / sizeof(T));
  std::int64_t first = std::min(count, (kLength - into_line) % kLength);
  compute(std::int64_t{0}, first, out);
  for (; first + kLength <= count; first += kLength) {
    alignas(kCacheLine) T line[kLength];
    compute(first, kLength, line);
    store_past_caches(reinterpret_cast<const float*>(line), reinterpret_cast<float*>(out + first));
  }
  compute(first, count - first, out + first);
  end_stores_past_caches();
}

}  // namespace sifr::detail
