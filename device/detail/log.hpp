#pragma once

#include "../../sifr_error.hpp"
#include "../log.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace sifr::detail {

/// Hands "[rank 3] [comm] text" to the sink, or, where it is empty, to the default of sifr::Log.
/// What a sink throws is dropped: a notice never ends the work that it reports.
SIFR_API void write_log(
    const Log& sink, int rank, std::string_view room, Level level, std::string_view text) noexcept;

template <class... Args>
void log(const Log& sink,
         int rank,
         std::string_view room,
         Level level,
         fmt::format_string<Args...> format,
         Args&&... args) {
  fmt::memory_buffer text;  // a line of usual length allocates nothing
  fmt::format_to(fmt::appender(text), format, std::forward<Args>(args)...);
  write_log(sink, rank, room, level, {text.data(), text.size()});
}

}  // namespace sifr::detail
