#pragma once

#include <fmt/format.h>

#define SIFR_TEXT_OF(argument) #argument
#define SIFR_VALUE_TEXT_OF(macro) SIFR_TEXT_OF(macro)

/// Throws `error` with a formatted text unless `condition` holds; the text is built only then. The
/// error's check() names the condition and where it stands.
#define SIFR_REQUIRE(error, condition, ...)                                        \
  do {                                                                             \
    if (!(condition))                                                              \
      throw error(fmt::format(__VA_ARGS__),                                        \
                  #condition ", " __FILE_NAME__ ":" SIFR_VALUE_TEXT_OF(__LINE__)); \
  } while (false)
