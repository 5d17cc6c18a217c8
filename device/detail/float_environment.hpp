#pragma once

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace sifr::detail {

/// IEEE arithmetic for a scope: round to nearest, denormals kept, no traps. A program linked with
/// -Ofast has flush-to-zero on in every thread; it gets that back at the end.
class FloatEnvironment {
 public:
#ifdef __x86_64__
  FloatEnvironment() noexcept : before_(_mm_getcsr()) {
    _mm_setcsr(0x1F80);
  }
  ~FloatEnvironment() {
    _mm_setcsr(before_);
  }
#else
  FloatEnvironment() noexcept = default;
  ~FloatEnvironment() = default;
#endif
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#ifdef __x86_64__
  unsigned before_;
#endif
};

}  // namespace sifr::detail
