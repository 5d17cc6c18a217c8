#include "comm/detail/process_memory.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

namespace sifr::detail {
namespace {

constexpr std::int64_t kPage = 4096;

/// Ends the wait for a peer's open files when the group fails or the deadline comes.
KeepWaiting until_deadline(const ControlBlock& control, const Call& call) {
  const auto deadline = std::chrono::steady_clock::now() + call.timeout;
  return [&control, &call, deadline] {
    if (control.abort_page().happened()) control.abort_page().raise();
    if (std::chrono::steady_clock::now() < deadline) return;
    const std::string text = fmt::format("no answer within {} s in allocate ({})",
                                         std::chrono::duration<double>(call.timeout).count(),
                                         call.tag);
    control.abort({FailureKind::kTimeout, -1, text});
    control.abort_page().raise();
  };
}

}  // namespace

ProcessMemory::ProcessMemory(Device& device,
                             std::shared_ptr<const HostLinks> links,
                             ControlBlock control,
                             int rank)
    : device_(device),
      links_(std::move(links)),
      control_(std::move(control)),
      rank_(rank),
      watch_(*links_, control_) {}

std::vector<DescriptorHandle> ProcessMemory::exchange(int descriptor, const Call& call) const {
  try {
    return links_->exchange(descriptor, until_deadline(control_, call));
  } catch (const PeerGone& gone) {
    watch_.report(gone);  // no effect where the watch was faster, or another rank
    control_.abort_page().raise();
  }
}

ProcessMemory::Arenas ProcessMemory::map_arenas(std::int64_t bytes, const Call& call) const {
  const std::int64_t whole_pages = (bytes + kPage - 1) / kPage * kPage;
  const DescriptorHandle memory = make_shared_memory("sifr-arena", whole_pages);
  Arenas arenas;
  arenas.own = SharedSegment(memory.get(), whole_pages, SharedSegment::Access::kReadWrite);
  const std::vector<DescriptorHandle> all = exchange(memory.get(), call);
  for (int r = 0; r < links_->size(); ++r) {
    const int theirs = all[static_cast<std::size_t>(r)].get();
    arenas.peers.push_back(
        r == rank_ ? SharedSegment()
                   : SharedSegment(theirs, sealed_size(theirs), SharedSegment::Access::kReadOnly));
  }
  return arenas;
}

void ProcessMemory::refuse(const std::system_error& error,
                           std::int64_t bytes,
                           Purpose purpose) const {
  const int number = error.code().value();
  const std::string text =
      fmt::format("{} of {} in shared memory: {}", name_of(purpose), mib(bytes), error.what());
  if (number == ENOSPC || number == ENOMEM || number == EFBIG) {
    throw OutOfMemory(text, device_.account().table().with_refused(Tier::kDevice, purpose, bytes));
  }
  throw DeviceError(number == EMFILE ? text + " (ulimit -n)" : text);
}

SharedBuffer ProcessMemory::allocate(std::int64_t bytes, Purpose purpose, const Call& call) {
  device_.account().require_room(bytes, purpose);
  device_.account().require_available(bytes, purpose);
  Arenas arenas;
  try {
    arenas = map_arenas(bytes, call);
  } catch (const std::system_error& error) {
    refuse(error, bytes, purpose);
  }
  Charge charge = device_.account().charge(bytes, purpose);  // now that it is there
  std::byte* data = arenas.own.data();
  const std::int32_t number = next_++;
  const std::lock_guard lock(table_->mutex);
  table_->arenas.emplace(number, std::move(arenas));
  if (data != nullptr) table_->starts.emplace(data, number);
  const std::shared_ptr<void> keep(nullptr, [table = table_, number, data](void*) {
    const std::lock_guard ending(table->mutex);
    table->starts.erase(data);
    table->arenas.erase(number);
  });
  return {data, bytes, std::move(charge), keep};
}

Place ProcessMemory::place_of(const std::byte* data, std::int64_t bytes) const {
  const std::lock_guard lock(table_->mutex);
  const auto after = table_->starts.upper_bound(data);
  if (after == table_->starts.begin()) return {Place::kStaged, 0};
  const auto [start, number] = *std::prev(after);
  const SharedSegment& own = table_->arenas.at(number).own;
  if (data + bytes > own.data() + own.bytes()) return {Place::kStaged, 0};
  return {number, data - start};
}

const std::byte* ProcessMemory::find(int rank, const Place& place, std::int64_t bytes) const {
  const std::lock_guard lock(table_->mutex);
  const auto found = table_->arenas.find(place.allocation);
  if (found == table_->arenas.end()) return nullptr;
  const SharedSegment& peer = found->second.peers[static_cast<std::size_t>(rank)];
  const bool fits =
      place.offset >= 0 && bytes <= peer.bytes() && place.offset <= peer.bytes() - bytes;
  return fits ? peer.data() + place.offset : nullptr;
}

}  // namespace sifr::detail
