#include "comm/detail/descriptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace sifr::detail {
namespace {

bool same_shape(const Entry& left, const Entry& right) noexcept {
  const bool both_have_data =
      left.place.allocation != Place::kNothing && right.place.allocation != Place::kNothing;
  return left.count == right.count && left.slice_count == right.slice_count &&
         left.first == right.first && (!both_have_data || left.dtype == right.dtype);
}

std::string shape_of(const Entry& entry) {
  const std::string_view dtype =
      entry.place.allocation == Place::kNothing ? "(zeros)" : sifr::name_of(entry.dtype);
  if (entry.slice_count == 0) return fmt::format("{} elements {}", entry.count, dtype);
  return fmt::format(
      "{} elements {} from {} in slices of {}", entry.count, dtype, entry.first, entry.slice_count);
}

std::string side(int rank, const Descriptor& call) {
  const std::string root =
      call.operation == Operation::kBroadcast ? fmt::format(" from rank {}", call.root) : "";
  return fmt::format("rank {} called {}{} with {} bytes in {} views",
                     rank,
                     describe(call.operation, call.tag_name()),
                     root,
                     call.bytes,
                     call.list_length);
}

/// Index in this round of the first entry that differs.
std::optional<std::size_t> first_difference(const Descriptor& left,
                                            const Descriptor& right) noexcept {
  const std::span<const Entry> a = left.round();
  const std::span<const Entry> b = right.round();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!same_shape(a[i], b[i])) return i;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::kReduceScatter:
      return "reduce-scatter";
    case Operation::kAllGather:
      return "all-gather";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kExchange:
      return "exchange";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kAllocate:
      return "allocate";
  }
  return "unknown operation";
}

std::string describe(Operation operation, std::string_view tag) {
  return tag.empty() ? std::string(name_of(operation))
                     : fmt::format("{} \"{}\"", name_of(operation), tag);
}

void Descriptor::set_tag(std::string_view name) noexcept {
  const std::size_t length = std::min(name.size(), kMaxTag);
  std::copy_n(name.data(), length, tag.data());
  tag[length] = '\0';
}

std::uint64_t add_to_digest(std::uint64_t digest, const Entry& entry) noexcept {
  for (const std::int64_t number : {entry.count, entry.slice_count, entry.first}) {
    digest = (digest ^ static_cast<std::uint64_t>(number)) * 0x9E3779B97F4A7C15U;
    digest ^= digest >> 29;
  }
  return digest;
}

std::string difference(int left_rank,
                       const Descriptor& left,
                       int right_rank,
                       const Descriptor& right) {
  const bool same_call = left.sequence == right.sequence && left.operation == right.operation &&
                         left.root == right.root && left.bytes == right.bytes &&
                         left.list_length == right.list_length &&
                         left.first_entry == right.first_entry &&
                         left.tag_name() == right.tag_name();
  std::string sides =
      same_call && left.digest == right.digest && !first_difference(left, right)
          ? std::string()
          : fmt::format("{}, but {}", side(left_rank, left), side(right_rank, right));
  if (!same_call) return sides;
  if (const auto i = first_difference(left, right)) {
    return fmt::format("{}; view {} has {} on rank {} and {} on rank {}",
                       sides,
                       left.first_entry + static_cast<std::int64_t>(*i),
                       shape_of(left.entries[*i]),
                       left_rank,
                       shape_of(right.entries[*i]),
                       right_rank);
  }
  if (left.digest == right.digest) return {};
  return fmt::format("{}; the views beyond number {} differ in shape",
                     sides,
                     left.first_entry + left.entry_count - 1);
}

}  // namespace sifr::detail
