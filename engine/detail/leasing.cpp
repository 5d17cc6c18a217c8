#include "device/detail/check.hpp"
#include "engine/detail/engine_state.hpp"
#include "zero/after_compute.hpp"

#include <fmt/format.h>

#include <algorithm>

// EngineState: leases and evaluation.
namespace sifr::detail {

// What the others tell of this rank where they wait for it or have parted from it.
void EngineState::note_phase(const char* what, std::string_view name) {
  fmt::memory_buffer text;  // a text of usual length allocates nothing
  const fmt::appender end(text);
  if (is_evaluating() || is_exporting_) {
    fmt::format_to(end, "after step {}, {}", steps_, what);
  } else {
    fmt::format_to(end, "step {}, micro-batch {}, {}", steps_ + 1, micro_in_step_ + 1, what);
  }
  if (!name.empty()) fmt::format_to(end, " '{}'", name);
  if (const auto& departure = coordinator().order().departure()) {
    const auto [made, expected] = *departure;
    fmt::format_to(
        end, " (first {} '{}' where the order ", name_of(made.act), layout_.unit(made.unit).name);
    if (expected) {
      fmt::format_to(end, "{} '{}')", name_of(expected->act), layout_.unit(expected->unit).name);
    } else {
      fmt::format_to(end, "is at its end)");
    }
  }
  communicator_.set_phase({text.data(), text.size()});
}

Weights EngineState::weights(const Unit& unit) {
  return guarded([&] {
    const int u = checked_index(unit, "weights()");
    finish_evaluation();
    note_phase("weights of", layout_.unit(u).name);
    if (evaluation_ == Evaluating::kWhole) {
      ++whole_leases_;
      leased_weights_[index(u)] =
          window_ ? everything_.data() + layout_.unit(u).weight_offset : store_.whole(u);
    } else {
      leased_weights_[index(u)] = coordinator().lease_weights(u);
    }
    return Weights(this, unit);
  });
}

void EngineState::release_weights(const Unit& unit) noexcept {
  if (evaluation_ == Evaluating::kWhole || evaluation_ == Evaluating::kWholeEnds) {
    --whole_leases_;
    return;
  }
  const bool is_training = evaluation_ == Evaluating::kNot;
  (is_training ? training_ : evaluating_).release_weights(unit.index());
}

Gradients EngineState::gradients(const Unit& unit) {
  return guarded([&] {
    const int u = checked_index(unit, "gradients()");
    finish_evaluation();
    const UnitLayout& layout = layout_.unit(u);
    SIFR_REQUIRE(UsageError,
                 !is_evaluating(),
                 "gradients('{}'): there are none in an evaluation",
                 layout.name);
    SIFR_REQUIRE(UsageError,
                 training_.gradient_leases(u) < layout.gradient_leases,
                 "gradients('{}'): this is lease number {} of the micro-batch, and the unit "
                 "declares {}: raise gradient_leases in Units::add, or lease it less often (was "
                 "backward called again without a step()?)",
                 layout.name,
                 training_.gradient_leases(u) + 1,
                 layout.gradient_leases);
    note_phase("gradients of", layout_.unit(u).name);
    const Coordinator::Opened opened = training_.open_gradients(u);
    leased_gradients_[index(u)] = opened.data;
    return Gradients(this, unit, opened.is_first);
  });
}

void EngineState::close_gradients(const Unit& unit) noexcept {
  training_.close_gradients(unit.index());
}

void EngineState::abandon_gradients(const Unit& unit) noexcept {
  if (!is_abandoned_) abandoned_unit_ = unit.index();
  is_abandoned_ = true;
  training_.abandon_gradients(unit.index());
  if (is_in_model_)
    return;  // the call that is being left tells the group, with the exception's text
  fail_group(
      fmt::format("the gradients of unit '{}' were given up: their scope was left by an exception, "
                  "or abandon() was called",
                  layout_.unit(unit.index()).name));
}

const ParameterLayout& EngineState::parameter(const Unit& unit, int parameter) const {
  const UnitLayout& layout = layout_.unit(unit.index());
  SIFR_REQUIRE(UsageError,
               parameter >= 0 && parameter < static_cast<int>(layout.parameters.size()),
               "unit '{}' has {} parameters, and number {} was asked for",
               layout.name,
               layout.parameters.size(),
               parameter);
  return layout.parameters[index(parameter)];
}

const std::byte* EngineState::weight_data(const Unit& unit, int number) const {
  const ParameterLayout& place = parameter(unit, number);
  const SegmentLayout& segment = layout_.unit(unit.index()).segments[index(place.segment)];
  return leased_weights_[index(unit.index())] + segment.weight_offset +
         place.first * size_of(segment.weights);
}

std::byte* EngineState::gradient_data(const Unit& unit, int number) const {
  const ParameterLayout& place = parameter(unit, number);
  const SegmentLayout& segment = layout_.unit(unit.index()).segments[index(place.segment)];
  return leased_gradients_[index(unit.index())] + segment.gradient_offset +
         place.first * size_of(segment.gradients);
}

Evaluation EngineState::evaluate(Residency residency) {
  return guarded([&] {
    require_ready_for("evaluate()");
    SIFR_REQUIRE(UsageError,
                 training_.order().done().empty(),
                 "evaluate(): a micro-batch has begun: call step() first");
    communicator_.barrier({"evaluate"});
    if (residency == Residency::kWhole) {
      gather_everything();
      evaluation_ = Evaluating::kWhole;
    } else {
      evaluation_ = Evaluating::kStreamed;
    }
    evaluating_.begin_micro_batch();
    return Evaluation(this);
  });
}

// Room for a call that all ranks make: each has it, or all leave the call.
void EngineState::try_together(const char* call,
                               std::int64_t bytes,
                               const std::function<void()>& take) {
  std::exception_ptr refused;
  try {
    take();
  } catch (const OutOfMemory&) {
    refused = std::current_exception();
  }
  const std::uint8_t mine = refused ? 1 : 0;
  std::vector<std::uint8_t> all(index(context_.size()));
  communicator_.exchange(
      std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), {call});
  const auto first = std::find(all.begin(), all.end(), 1);
  if (!refused && first != all.end()) {
    refused = std::make_exception_ptr(OutOfMemory(
        fmt::format(
            "{}: rank {} has no room for {}: see its error", call, first - all.begin(), mib(bytes)),
        device_.account().table()));
  }
  if (refused) throw AgreedFailure{refused};
}

void EngineState::gather_everything() {
  if (!window_) return;
  const std::int64_t bytes = layout_.weight_bytes();
  try_together(
      "evaluate()", bytes, [&] { everything_ = device_.allocate(bytes, Purpose::kWindow); });
  std::vector<GatherPart> parts;
  for (int u = 0; u < layout_.unit_count(); ++u)
    store_.add_parts(u, everything_.data() + layout_.unit(u).weight_offset, parts);
  communicator_.all_gather(parts, {"whole weights"}, after_compute(communicator_, stream_)).wait();
}

// A destructor's: the collective part comes with the next call.
void EngineState::end_evaluation() noexcept {
  evaluation_ =
      evaluation_ == Evaluating::kWhole ? Evaluating::kWholeEnds : Evaluating::kStreamedEnds;
}

void EngineState::finish_evaluation() {
  if (evaluation_ != Evaluating::kStreamedEnds && evaluation_ != Evaluating::kWholeEnds) return;
  const int open = evaluating_.open_unit();
  SIFR_REQUIRE(UsageError,
               open < 0 && whole_leases_ == 0,
               "an evaluation has ended while a weights lease{} is open: end leases first",
               open < 0 ? "" : fmt::format(" on unit '{}'", layout_.unit(open).name));
  if (evaluation_ == Evaluating::kStreamedEnds) {
    evaluating_.end_micro_batch();
    roll_call_.meet(occasion("end of evaluation"), {}, evaluating_.order());
    evaluating_.order().adopt();
  } else {
    everything_ = Buffer();
  }
  evaluation_ = Evaluating::kNot;
}

}  // namespace sifr::detail
