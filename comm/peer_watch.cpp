#include "comm/detail/peer_watch.hpp"

#include "comm/detail/quiet_thread.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <string>
#include <system_error>
#include <utility>

namespace sifr::detail {

PeerWatch::PeerWatch(const HostLinks& links, ControlBlock control)
    : links_(links), control_(std::move(control)), stop_(eventfd(0, EFD_CLOEXEC)) {
  if (stop_.get() < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  thread_ = start_quiet_thread("sifr-watch", [this] { run(); });
}

PeerWatch::~PeerWatch() {
  const std::uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof(one)) == sizeof(one)) thread_.join();
}

void PeerWatch::run() const {
  std::vector<pollfd> entries = {{stop_.get(), POLLIN, 0}};
  for (const HostLinks::Link& link : links_.links())
    entries.push_back({link.socket.descriptor(), POLLRDHUP, 0});
  for (;;) {
    if (poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) return;
    if (entries[0].revents != 0) return;
    for (std::size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].revents == 0) continue;
      const HostLinks::Link& link = links_.links()[i - 1];
      if (control_.rank(link.rank).has_left.load(std::memory_order_acquire) == 0)
        report(death_of(link));
      entries[i].fd = -1;
    }
  }
}

void PeerWatch::report(const PeerGone& gone) const {
  const std::string text =
      fmt::format("{} ({})", gone.what(), whereabouts(control_.rank(gone.rank())));
  control_.abort({FailureKind::kDied, gone.rank(), text});
}

}  // namespace sifr::detail
