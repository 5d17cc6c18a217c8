#pragma once

#include "comm/communicator.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sifr::detail {

enum class Operation : std::uint32_t {
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kExchange,
  kBarrier,
  kAllocate
};
[[nodiscard]] std::string_view name_of(Operation operation) noexcept;

/// Where peers find memory of this rank: in its address space, in one of its allocations, or only
/// by staging.
struct Place {
  static constexpr std::int32_t kAddress = -1;  // offset is an address; ranks are threads
  static constexpr std::int32_t kStaged = -2;
  static constexpr std::int32_t kNothing = -3;  // the rank contributes zeros
  std::int32_t allocation = kNothing;
  std::int64_t offset = 0;
};

/// One entry of a collective's list, as one rank sees it. Shape and dtype are compared, the place
/// is not.
struct Entry {
  Place place = {};
  DType dtype = DType::kFloat32;
  std::int64_t count = 0;        // elements that this rank hands to each reader
  std::int64_t slice_count = 0;  // reduce-scatter only, and `first` too
  std::int64_t first = 0;
};

/// What one rank says about its next collective before anything moves. Lists longer than
/// kMaxEntries are posted in rounds; the first round already tells the sums and the digest of the
/// whole list.
struct Descriptor {
  static constexpr std::int64_t kMaxEntries = 256;
  static constexpr std::size_t kMaxTag = 95;

  std::uint32_t sequence = 0;
  Operation operation = Operation::kExchange;
  std::int32_t root = 0;
  std::int64_t bytes = 0;        // of the results, over the whole list
  std::int64_t list_length = 0;  // entries in all rounds
  std::int64_t first_entry = 0;  // of this round
  std::int64_t entry_count = 0;  // in this round
  std::uint64_t digest = 0;      // of all entries' shapes
  std::array<char, kMaxTag + 1> tag = {};
  std::array<Entry, kMaxEntries> entries = {};

  void set_tag(std::string_view name) noexcept;
  [[nodiscard]] std::string_view tag_name() const noexcept { return tag.data(); }
  [[nodiscard]] std::span<const Entry> round() const noexcept {
    return {entries.data(), static_cast<std::size_t>(entry_count)};
  }
};

/// Mixes one more entry's shape into a digest.
[[nodiscard]] std::uint64_t add_to_digest(std::uint64_t digest, const Entry& entry) noexcept;

/// What differs between two ranks' descriptors, both sides told; empty if nothing does.
[[nodiscard]] std::string difference(int left_rank,
                                     const Descriptor& left,
                                     int right_rank,
                                     const Descriptor& right);

/// `reduce-scatter "block.3"`, or without the name where it is empty.
[[nodiscard]] std::string describe(Operation operation, std::string_view tag);

}  // namespace sifr::detail
