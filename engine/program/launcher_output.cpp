#include "engine/program/launcher_output.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <unistd.h>

namespace sifr::program {
namespace {

/// The flag O_NONBLOCK belongs to whoever shares the open file, the shell among them: hence one
/// more open file. A regular file has its position there and does not stall.
int open_anew(int stream) {
  struct stat status = {};
  const bool may_stall =
      fstat(stream, &status) == 0 && (S_ISFIFO(status.st_mode) || isatty(stream) == 1);
  if (!may_stall) return -1;
  const std::string path = fmt::format("/proc/self/fd/{}", stream);
  return open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/// send() is what does not block on a socket.
ssize_t write_now(int descriptor, std::string_view bytes) noexcept {
  const ssize_t sent = send(descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return ::write(descriptor, bytes.data(), bytes.size());
}

}  // namespace

LauncherOutput::LauncherOutput(int stream) : stream_(stream), own_(open_anew(stream)) {}

LauncherOutput::~LauncherOutput() {
  if (own_ >= 0) close(own_);
}

pollfd LauncherOutput::readiness() const noexcept {
  const int descriptor = own_ >= 0 ? own_ : stream_;
  return {is_empty() ? -1 : descriptor, POLLOUT, 0};
}

void LauncherOutput::write() {
  std::size_t written = 0;
  while (written < kept_.size()) {
    pollfd entry = readiness();
    if (poll(&entry, 1, 0) != 1) break;
    const auto piece = std::string_view(kept_).substr(written, next_piece(written));
    const ssize_t count = write_now(entry.fd, piece);
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0 && errno != EINTR) written = kept_.size();
    written += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  kept_.erase(0, written);
}

/// Whole lines where they fit, and no more than a pipe takes in one piece: other writers' lines do
/// not get in between, and a pipe that has room does not block.
std::size_t LauncherOutput::next_piece(std::size_t from) const noexcept {
  const std::size_t most = std::min<std::size_t>(kept_.size() - from, PIPE_BUF);
  const std::size_t feed = std::string_view(kept_).substr(from, most).rfind('\n');
  return feed == std::string_view::npos ? most : feed + 1;
}

bool is_same_output(int stream, int other) noexcept {
  struct stat one = {};
  struct stat two = {};
  return fstat(stream, &one) == 0 && fstat(other, &two) == 0 && one.st_dev == two.st_dev &&
         one.st_ino == two.st_ino;
}

}  // namespace sifr::program
