#include "comm/detail/local_communicator.hpp"

#include "comm/detail/sum_with_zeros.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

namespace sifr::detail {
namespace {

constexpr std::int64_t kCopyGrain = 1 << 20;  // bytes

std::int64_t result_bytes(const ReducePart& part) noexcept {
  return part.sum.bytes();
}
std::int64_t result_bytes(const GatherPart& part) noexcept {
  return part.whole.bytes();
}
std::int64_t result_bytes(const View& view) noexcept {
  return view.bytes();
}

}  // namespace

LocalCommunicator::LocalCommunicator(Device& device,
                                     int rank,
                                     const ControlBlock& control,
                                     std::unique_ptr<PeerMemory> memory,
                                     const GroupOptions& options)
    : device_(device),
      memory_(std::move(memory)),
      rounds_(control, rank, options, memory_->is_owned_by_peers()),
      timeout_(options.timeout),
      inputs_(static_cast<std::size_t>(control.size())),
      inline_(Stream::caller(&device.pool())),
      stream_(device.make_stream("sifr-comm-" + std::to_string(rank))) {}

LocalCommunicator::~LocalCommunicator() {
  if (std::uncaught_exceptions() > 0) abort("it left the group while an exception was thrown");
  try {
    stream_.synchronize();
  } catch (...) {  // the group has failed: every rank has been told, or is told at its next call
    (void)0;
  }
  rounds_.own().has_left.store(1, std::memory_order_release);
  rounds_.control().wake_all();
}

Communicator::Traffic LocalCommunicator::traffic() const noexcept {
  return {counts_.reduced, counts_.gathered, counts_.staged, counts_.collectives};
}

Call LocalCommunicator::make_call(Operation operation, std::string_view tag) const noexcept {
  return {operation, tag, timeout_.load(), 0};
}

Event LocalCommunicator::enqueue(Stream& stream, Task task) {
  check();
  const bool is_own = &stream == &stream_;
  if (!(is_own && last_was_on_own_stream_)) stream.wait(last_);
  stream.submit(std::move(task));
  last_ = stream.record();
  last_was_on_own_stream_ = is_own;
  return last_;
}

template <class Part, class Move>
void LocalCommunicator::run_list(const Call& call,
                                 int root,
                                 std::span<const Part> parts,
                                 const Move& move) {
  std::int64_t bytes = 0;
  std::uint64_t digest = 0;
  for (const Part& part : parts) {
    bytes += result_bytes(part);
    digest = add_to_digest(digest, entry_for(part));
  }
  const auto length = static_cast<std::int64_t>(parts.size());
  std::int64_t first = 0;
  do {
    const std::int64_t count = std::min(Descriptor::kMaxEntries, length - first);
    const auto round =
        parts.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    Descriptor& draft = rounds_.draft();
    draft.root = root;
    draft.bytes = bytes;
    draft.list_length = length;
    draft.first_entry = first;
    draft.entry_count = count;
    draft.digest = digest;
    std::transform(round.begin(), round.end(), draft.entries.begin(), [&](const Part& part) {
      return entry_for(part);
    });
    rounds_.run(call, [&] {
      for (std::size_t i = 0; i < round.size(); ++i)
        move(round[i], i);
    });
    first += count;
  } while (first < length);
  ++counts_.collectives;
}

Event LocalCommunicator::do_reduce_scatter(std::span<const ReducePart> parts,
                                           Tag tag,
                                           Stream& stream) {
  return enqueue(stream, [this, parts, call = make_call(Operation::kReduceScatter, tag.name)] {
    run_list(call, 0, parts, [this](const ReducePart& part, std::size_t i) { reduce(part, i); });
  });
}

Event LocalCommunicator::do_all_gather(std::span<const GatherPart> parts, Tag tag, Stream& stream) {
  return enqueue(stream, [this, parts, call = make_call(Operation::kAllGather, tag.name)] {
    run_list(call, 0, parts, [this](const GatherPart& part, std::size_t i) { gather(part, i); });
  });
}

Event LocalCommunicator::do_broadcast(std::span<const View> views,
                                      int root,
                                      Tag tag,
                                      Stream& stream) {
  return enqueue(stream, [this, views, root, call = make_call(Operation::kBroadcast, tag.name)] {
    run_list(call, root, views, [this, root](const View& view, std::size_t i) {
      receive(view, root, i);
    });
  });
}

void LocalCommunicator::do_exchange(std::span<const std::byte> mine,
                                    std::span<std::byte> all,
                                    Tag tag) {
  last_.wait();
  std::size_t first = 0;
  do {
    const std::size_t count = std::min(RankBlock::kMailboxBytes, mine.size() - first);
    Descriptor& draft = rounds_.draft();
    draft.root = 0;
    draft.bytes = static_cast<std::int64_t>(mine.size());
    draft.list_length = draft.entry_count = 0;
    draft.first_entry = static_cast<std::int64_t>(first);
    draft.digest = 0;
    std::copy_n(
        mine.begin() + static_cast<std::ptrdiff_t>(first), count, rounds_.own().mailbox.begin());
    rounds_.run(make_call(Operation::kExchange, tag.name), [&] {
      for (int r = 0; r < size(); ++r) {
        const auto at = static_cast<std::size_t>(r) * mine.size() + first;
        std::copy_n(
            rounds_.block(r).mailbox.begin(), count, all.begin() + static_cast<std::ptrdiff_t>(at));
      }
    });
    first += count;
  } while (first < mine.size());
  ++counts_.collectives;
}

SharedBuffer LocalCommunicator::do_allocate(std::int64_t bytes, Purpose purpose) {
  last_.wait();
  const Call call = make_call(Operation::kAllocate, name_of(purpose));
  Descriptor& draft = rounds_.draft();
  draft.root = 0;
  draft.bytes = draft.list_length = draft.first_entry = draft.entry_count = 0;
  draft.digest = 0;
  rounds_.run(call, [] {});
  try {
    return memory_->allocate(bytes, purpose, call);
  } catch (const std::exception& error) {
    abort(error.what());
    throw;
  }
}

Place LocalCommunicator::place_of(ConstView view) const {
  return view.count == 0 ? Place{Place::kAddress, 0} : memory_->place_of(view.data, view.bytes());
}

Entry LocalCommunicator::entry_for(const ReducePart& part) const {
  const bool is_zero = part.whole.count == 0 && part.slice_count > 0;
  return {is_zero ? Place{} : place_of(part.whole),
          part.whole.dtype,
          part.sum.count,
          part.slice_count,
          part.first};
}

Entry LocalCommunicator::entry_for(const GatherPart& part) const {
  return {place_of(part.part), part.part.dtype, part.part.count, 0, 0};
}

Entry LocalCommunicator::entry_for(const View& view) const {
  return {place_of(view), view.dtype, view.count, 0, 0};
}

ConstView LocalCommunicator::peer_view(int peer, std::size_t index, std::int64_t skip) const {
  const Entry& entry = rounds_.block(peer).descriptor.entries[index];
  const Place place = {entry.place.allocation, entry.place.offset + skip * size_of(entry.dtype)};
  const std::int64_t bytes = entry.count * size_of(entry.dtype);
  return {bytes == 0 ? nullptr : memory_->find(peer, place, bytes), entry.count, entry.dtype};
}

void LocalCommunicator::reduce(const ReducePart& part, std::size_t index) {
  if (part.sum.count == 0) return;
  const std::int64_t skip = rank() * part.slice_count + part.first;
  for (int r = 0; r < size(); ++r) {
    const bool is_zero =
        rounds_.block(r).descriptor.entries[index].place.allocation == Place::kNothing;
    ConstView& input = inputs_[static_cast<std::size_t>(r)];
    input = {};
    if (!is_zero)
      input = r == rank() ? part.whole.slice(skip, part.sum.count) : peer_view(r, index, skip);
    counts_.reduced += is_zero ? 0 : input.bytes();
  }
  sum_with_zeros(
      inputs_, part.sum, part.accumulate ? kernels::Into::kAdd : kernels::Into::kWrite, inline_);
}

void LocalCommunicator::gather(const GatherPart& part, std::size_t index) {
  for (int r = 0; r < size(); ++r) {
    const ConstView from = r == rank() ? part.part : peer_view(r, index, 0);
    copy(from, part.whole.slice(r * part.part.count, part.part.count));
  }
}

void LocalCommunicator::receive(const View& view, int root, std::size_t index) {
  if (rank() != root) copy(peer_view(root, index, 0), view);
}

void LocalCommunicator::copy(ConstView from, View to) {
  if (from.data == to.data || to.count == 0) return;
  device_.pool().parallel_for(to.bytes(), kCopyGrain, [&](std::int64_t first, std::int64_t last) {
    std::memcpy(to.data + first, from.data + first, static_cast<std::size_t>(last - first));
  });
  counts_.gathered += to.bytes();
}

}  // namespace sifr::detail
