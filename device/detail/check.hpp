#pragma once

#include <fmt/format.h>

/// Throws `error` with a formatted text unless `condition` holds; the text is built only then, and
/// names the condition and where it stands.
#define SIFR_REQUIRE(error, condition, ...)                                                  \
  do {                                                                                       \
    if (!(condition))                                                                        \
      throw error(fmt::format(                                                               \
          "{} [{}, {}:{}]", fmt::format(__VA_ARGS__), #condition, __FILE_NAME__, __LINE__)); \
  } while (false)
