#pragma once

// The version of sifr. CMake reads it from here.
#define SIFR_VERSION_MAJOR 0
#define SIFR_VERSION_MINOR 1
#define SIFR_VERSION_PATCH 0

/// Comparable as a number: 0.1.0 is 100.
#define SIFR_VERSION (SIFR_VERSION_MAJOR * 10000 + SIFR_VERSION_MINOR * 100 + SIFR_VERSION_PATCH)
