#include "device/detail/log.hpp"

#include <cstdio>

namespace sifr::detail {

void write_log(
    const Log& sink, int rank, std::string_view room, Level level, std::string_view text) noexcept {
  try {
    fmt::memory_buffer line;
    fmt::format_to(fmt::appender(line), "[rank {}] [{}] {}", rank, room, text);
    if (sink) return sink(level, {line.data(), line.size()});
    if (level == Level::kDebug || (level == Level::kInfo && rank != 0)) return;
    line.push_back('\n');
    std::fwrite(line.data(), 1, line.size(), level == Level::kInfo ? stdout : stderr);
  } catch (...) {  // a full disk, a failing sink: the work goes on without the notice
    return;
  }
}

}  // namespace sifr::detail
