#pragma once

// How the example's own loops are built: written once as an inline template over the element type,
// called from one static function per type that the compiler copies for each level of x86-64
// vectors; the program picks a copy when it starts. Files with such loops are built without
// contraction, so that all copies compute the same bits. The choice runs before ThreadSanitizer is
// up: its builds have the first copy only.
#if defined(__x86_64__) && !defined(LLAMA_WITHOUT_CLONES)
#define LLAMA_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define LLAMA_CLONES __attribute__((noinline))
#endif

/// A loop or one element's arithmetic, inlined into every copy.
#define LLAMA_INLINE inline __attribute__((always_inline))
