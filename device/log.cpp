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
    std::FILE* stream = level == Level::kInfo ? stdout : stderr;
    std::fwrite(line.data(), 1, line.size(), stream);
    std::fflush(stream);  // in a log file too, before what comes next may end the process
  } catch (...) {         // a full disk, a failing sink: the work goes on without the notice
    return;
  }
}

}  // namespace sifr::detail
