#include "device/detail/log.hpp"

#include <cstdio>

namespace sifr::detail {

void write_log(
    const Log& sink, int rank, std::string_view room, Level level, std::string_view text) noexcept {
  try {
    const std::string line = fmt::format("[rank {}] [{}] {}", rank, room, text);
    if (sink) return sink(level, line);
    if (level == Level::kDebug || (level == Level::kInfo && rank != 0)) return;
    fmt::print(level == Level::kInfo ? stdout : stderr, "{}\n", line);
  } catch (...) {  // a full disk, a failing sink: the work goes on without the notice
    return;
  }
}

}  // namespace sifr::detail
