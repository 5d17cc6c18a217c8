#pragma once

// How the arithmetic of kernels is compiled.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIFR_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define SIFR_TSAN 1
#endif

/// On a `static`, non-template function: one copy for each level of x86-64 vectors, chosen when the
/// program starts. The choice runs before ThreadSanitizer is up, so that its builds have the first
/// copy only.
#if defined(__x86_64__) && !defined(SIFR_TSAN)
#define SIFR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define SIFR_CLONES __attribute__((noinline))
#endif

#ifdef __CUDACC__
#define SIFR_HOST_DEVICE __host__ __device__
#else
#define SIFR_HOST_DEVICE
#endif

/// The arithmetic of a loop or of one element: inlined into every copy, never linked against a
/// user's build of it.
#define SIFR_INLINE SIFR_HOST_DEVICE static inline __attribute__((always_inline))

/// The same for a lambda, behind its parameters.
#define SIFR_INLINED __attribute__((always_inline))

/// Before a loop: its iterations do not depend on one another, though its pointers may be equal.
#ifdef __clang__
#define SIFR_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SIFR_INDEPENDENT _Pragma("GCC ivdep")
#endif
