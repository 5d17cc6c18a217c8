#include "device/detail/check.hpp"
#include "device/kernels.hpp"
#include "engine/detail/engine_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

// EngineState: whole weights and their hash, out of shards.
namespace sifr::detail {

namespace {
constexpr std::int64_t kPiece = 1 << 22;  // elements: 16 MiB in fp32
constexpr std::int64_t kLeastPiece = 1 << 10;

// The first line, never empty: the rank at fault throws all of it.
std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    std::string text = error.what();
    text.resize(std::min(text.size(), text.find('\n')));
    return text.empty() ? "an exception without text" : text;
  } catch (...) {
    return "an exception that is no std::exception";
  }
}
}  // namespace

// This rank's slice of what is exported.
View EngineState::exported_slice(int unit, int segment, ExportAs what) const {
  const bool has_masters = layout_.unit(unit).segments[index(segment)].trainable;
  return what == ExportAs::kMasters && has_masters ? optimizer_.master_slice(unit, segment)
                                                   : store_.slice(unit, segment);
}

struct EngineState::Export {
  const Sink& sink;
  ExportAs what;
  int root;
  SharedBuffer staging;            // for one piece, that peers read in place
  std::exception_ptr thrown = {};  // by the sink, which is called no more then
};

void EngineState::export_weights(const Sink& sink, ExportAs what, int root) {
  guarded([&] {
    require_ready_for("export_weights()");
    SIFR_REQUIRE(UsageError,
                 root >= 0 && root < context_.size(),
                 "export_weights(): root is {}, and there are {} ranks",
                 root,
                 context_.size());
    SIFR_REQUIRE(
        UsageError, context_.rank() != root || sink, "export_weights(): the root needs a sink");
    Export out{sink, what, root, allocate_staging()};
    is_exporting_ = true;
    const auto ended = [this](void*) { is_exporting_ = false; };
    const std::unique_ptr<EngineState, decltype(ended)> scope(this, ended);
    note_phase("export_weights()");
    for (int u = 0; u < layout_.unit_count(); ++u) {
      for (const ParameterLayout& parameter : layout_.unit(u).parameters)
        export_parameter(parameter, u, out);
    }
    tell_of_sink(out.thrown, root);
  });
}

// Where memory is short the pieces are smaller: a trained model can be saved all the same.
SharedBuffer EngineState::allocate_staging() {
  std::int64_t count = 0;
  for (const UnitLayout& unit : layout_.units()) {
    for (const ParameterLayout& parameter : unit.parameters)
      count = std::max(count, parameter.spec.count);
  }
  count = std::min(count, kPiece);
  while (true) {
    const std::int64_t bytes = count * size_of(DType::kFloat32);
    try {
      try_together("export_weights()", bytes, [&] {
        device_.account().require_room(bytes, Purpose::kStaging);
      });
      return communicator_.allocate(bytes, Purpose::kStaging);
    } catch (const AgreedFailure&) {
      if (count <= kLeastPiece) throw;
      count = std::max(count / 4, kLeastPiece);
    }
  }
}

// A sink that threw has ended nothing: all pieces were offered to the collectives, and all ranks
// learn of it here.
void EngineState::tell_of_sink(const std::exception_ptr& thrown, int root) {
  using Text = std::array<char, 256>;
  Text mine = {};
  if (thrown) fmt::format_to_n(mine.data(), mine.size() - 1, "{}", text_of(thrown));
  std::vector<Text> all(index(context_.size()));
  communicator_.exchange(
      std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), {"export"});
  if (thrown) std::rethrow_exception(thrown);
  SIFR_REQUIRE(UsageError,
               all[index(root)][0] == '\0',
               "export_weights(): the sink on rank {} threw: {}",
               root,
               all[index(root)].data());
}

// Pieces lie within one rank's slice: its owner broadcasts them.
void EngineState::export_parameter(const ParameterLayout& parameter, int unit, Export& out) {
  const std::int64_t slice_count =
      layout_.unit(unit).segments[index(parameter.segment)].slice_count;
  const View slice = exported_slice(unit, parameter.segment, out.what);
  const std::int64_t most = out.staging.bytes() / size_of(DType::kFloat32);
  std::int64_t done = 0;
  do {
    const std::int64_t position = parameter.first + done;
    const int owner = slice_count == 0 ? 0 : static_cast<int>(position / slice_count);
    const std::int64_t in_slice = position - owner * slice_count;
    const std::int64_t count =
        std::min({most, parameter.spec.count - done, slice_count - in_slice});
    const View piece{out.staging.data(), count, slice.dtype};
    if (count > 0) {
      if (owner == context_.rank())
        kernels::cast(slice.slice(in_slice, count), piece, device_.compute());
      communicator_.broadcast(std::span(&piece, 1), owner, {parameter.spec.name}, device_.compute())
          .wait();
    }
    if (context_.rank() == out.root && !out.thrown) {
      try {
        out.sink({parameter.spec.name, parameter.spec.shape, done, piece});
      } catch (...) {
        out.thrown = std::current_exception();
      }
    }
    done += count;
  } while (done < parameter.spec.count);
}

std::string EngineState::weights_hash() {
  return guarded([&] {
    require_ready_for("weights_hash()");
    kernels::Hash128 own;
    for (int u = 0; u < layout_.unit_count(); ++u) {
      const UnitLayout& unit = layout_.unit(u);
      for (int s = 0; s < static_cast<int>(unit.segments.size()); ++s) {
        const std::int64_t slice_count = unit.segments[index(s)].slice_count;
        const std::int64_t first = context_.rank() * slice_count;
        const View slice = exported_slice(u, s, ExportAs::kMasters);
        for (const Stretch& stretch : layout_.stretches(u, s, first, first + slice_count)) {
          kernels::hash(slice.slice(stretch.segment_first - first, stretch.count),
                        unit.parameters[index(stretch.parameter)].index,
                        stretch.parameter_first,
                        own,
                        device_.compute());
        }
      }
    }
    std::vector<kernels::Hash128> all(index(context_.size()));
    communicator_.exchange(std::as_bytes(std::span(&own, 1)),
                           std::as_writable_bytes(std::span(all)),
                           {"weights hash"});
    kernels::Hash128 sum;
    for (const kernels::Hash128& hash : all)
      sum.add(hash);
    return sum.to_string();
  });
}

}  // namespace sifr::detail
