#include "examples/llama/trainer.hpp"

#include "examples/llama/console.hpp"
#include "examples/llama/evaluation.hpp"
#include "examples/llama/failure.hpp"
#include "examples/llama/save.hpp"
#include "examples/llama/stopwatch.hpp"

#include <fmt/format.h>

#include <string>

namespace llama {
namespace {

LlamaOptions model_options(const Options& options, const Inputs& inputs) {
  LlamaOptions model{.shape = inputs.shape(),
                     .seed = inputs.seed(),
                     .threads = options.threads,
                     .recompute = options.recompute,
                     .no_decay_norms = options.no_decay_norms};
  if (const HuggingFaceModel* source = inputs.model(); source != nullptr)
    model.fill = [source](std::string_view name) { return source->fill(name); };
  return model;
}

}  // namespace

Trainer::Trainer(sifr::Context& context,
                 const Options& options,
                 const Inputs& inputs,
                 SignalWatch& signals)
    : options_(options),
      inputs_(inputs),
      signals_(signals),
      model_(model_options(options, inputs)),
      engine_(sifr::Engine::initialize(model_, inputs.config(), {.context = &context})),
      tokens_(engine_.allocate(step_tokens() * static_cast<std::int64_t>(sizeof(std::int32_t)))),
      progress_(options.steps) {
  on_root(context, "--save", [&] {
    if (!options_.save.empty()) save_lock_.emplace(options_.save);
  });
  on_root(context, "--metrics", [&] {
    if (!options_.metrics.empty()) metrics_.emplace(options_.metrics);
  });
  if (!options_.save.empty()) try_to_save(context, save_options(), engine_dtype(), saved_as());
  require_room_to_generate();
}

std::int64_t Trainer::micro_batch_tokens() const {
  return token_count(engine_.batch().micro, options_.sequence_length);
}

std::int64_t Trainer::step_tokens() const {
  return engine_.batch().accumulation * micro_batch_tokens();
}

std::span<std::int32_t> Trainer::tokens(std::int64_t micro_batch) const {
  const auto count = static_cast<std::size_t>(micro_batch_tokens());
  return {reinterpret_cast<std::int32_t*>(tokens_.data()) +
              static_cast<std::size_t>(micro_batch) * count,
          count};
}

sifr::DType Trainer::engine_dtype() const {
  return inputs_.config().bf16.enabled ? sifr::DType::kBFloat16 : sifr::DType::kFloat32;
}

SaveOptions Trainer::save_options() const {
  return {.folder = options_.save, .shape = inputs_.shape(), .source = inputs_.model()};
}

sifr::ExportAs Trainer::saved_as() const {
  return options_.save_masters ? sifr::ExportAs::kMasters : sifr::ExportAs::kWeights;
}

End Trainer::run() {
  if (!options_.logits.empty()) write_logits(engine_, model_, inputs_.samples(), options_.logits);
  signals_.expect();
  for (std::int64_t step = 0; step < options_.steps; ++step) {
    report(train_step(step));
    if (is_interrupted()) {
      if (is_root())
        print(fmt::format("interrupted after step {} of {}\n", step + 1, options_.steps));
      break;
    }
    do_between_steps(step + 1);
  }
  return finish();
}

bool Trainer::is_interrupted() {
  return engine_.context().sum(signals_.happened() ? 1 : 0) > 0;
}

// Before the step: in its midst there would be no weights to save.
void Trainer::read_step(std::int64_t step) {
  const sifr::BatchPlan plan = engine_.batch();
  const SampleSplit split{
      .accumulation = plan.accumulation, .ranks = engine_.size(), .rows = plan.micro};
  const auto length = static_cast<std::size_t>(options_.sequence_length) + 1;
  for (std::int64_t micro_batch = 0; micro_batch < plan.accumulation; ++micro_batch) {
    for (std::int64_t row = 0; row < plan.micro; ++row) {
      const std::int64_t index = sample_index({step, micro_batch, engine_.rank(), row}, split);
      const auto first = static_cast<std::size_t>(row) * length;
      inputs_.samples().read(index, tokens(micro_batch).subspan(first, length));
    }
  }
}

sifr::StepReport Trainer::compute_step() {
  const sifr::BatchPlan plan = engine_.batch();
  sifr::StepReport report;
  for (std::int64_t micro_batch = 0; micro_batch < plan.accumulation; ++micro_batch) {
    const TokenBatch batch{tokens(micro_batch), {plan.micro, options_.sequence_length}};
    engine_.forward(batch);
    engine_.backward();
    report = engine_.step();
  }
  return report;
}

StepMetrics Trainer::train_step(std::int64_t step) {
  const sifr::BatchPlan plan = engine_.batch();
  const Stopwatch watch;
  StepMetrics metrics;
  or_save([&] {
    on_all(engine_.context(), "--data", [&] { read_step(step); });
    metrics.report = compute_step();
  });
  metrics.step = step;
  metrics.seconds = watch.seconds();
  metrics.tokens = plan.train * options_.sequence_length;
  return metrics;
}

void Trainer::report(const StepMetrics& metrics) {
  StepMetrics complete = metrics;
  complete.memory = engine_.memory();
  if (options_.hash_weights) complete.weights_hash = engine_.weights_hash();
  or_save([&] {
    on_root(engine_.context(), "--metrics", [&] {
      if (metrics_) metrics_->write(complete);
    });
  });
  if (is_root()) progress_.show(complete);
}

void Trainer::or_save(const std::function<void()>& action) {
  try {
    action();
  } catch (const PeerFailed&) {
    save_or_warn("not saved");
    throw;
  } catch (const sifr::IoError&) {
    save_or_warn("not saved");
    throw;
  } catch (const sifr::NumericsError&) {
    save_or_warn("not saved");
    throw;
  }
}

void Trainer::do_between_steps(std::int64_t done) {
  if (done == options_.steps) return;  // finish() does all of it
  if (options_.eval_every > 0 && done % options_.eval_every == 0) or_save([&] { evaluate(); });
  if (options_.save_every == 0 || done % options_.save_every != 0) return;
  save_or_warn(fmt::format("not saved after step {}, training goes on", done));
}

void Trainer::evaluate() {
  if (inputs_.held_out() == nullptr) return;
  const double loss = held_out_loss(engine_, model_, *inputs_.held_out(), engine_.batch().micro);
  const double entropy = inputs_.held_out_entropy();
  if (!is_root()) return;
  print(fmt::format("held-out loss {:.4f}, unigram entropy {:.4f}, ratio {:.3f}\n",
                    loss,
                    entropy,
                    loss / entropy));
}

void Trainer::save() {
  if (options_.save.empty()) return;
  save_model(engine_, save_options(), engine_dtype(), saved_as());
  if (is_root()) print(fmt::format("saved {}\n", options_.save.string()));
}

void Trainer::save_or_warn(const std::string& otherwise) {
  try {
    save();
  } catch (const PeerFailed&) {  // who tells it
  } catch (const sifr::IoError& error) {
    warn(fmt::format("{}: {}", otherwise, error.message()));
  }
}

End Trainer::finish() {
  save();
  if (!is_interrupted()) evaluate();
  const bool is_cut_short = is_interrupted();
  const bool is_prompted = options_.generate || !options_.generate_tokens.empty();
  if (is_prompted && !is_cut_short) generate();
  if (options_.hash_weights) {
    const std::string hash = engine_.weights_hash();
    if (is_root()) print(fmt::format("weights_hash {}\n", hash));
  }
  if (is_root()) print(fmt::format("memory of rank 0:\n{}\n", engine_.memory().to_string()));
  return is_cut_short ? End::kInterrupted : End::kDone;
}

std::vector<std::int32_t> Trainer::prompt() const {
  std::vector<std::int32_t> tokens = options_.generate_tokens;
  for (const char byte : options_.generate.value_or(""))
    tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

void Trainer::require_room_to_generate() const {
  const auto length = static_cast<std::int64_t>(prompt().size());
  if (length == 0) return;
  const std::int64_t bytes =
      model_.generation_bytes(engine_dtype(), length + options_.generate_count);
  if (bytes <= sifr::available_bytes()) return;
  throw sifr::UsageError(fmt::format("--generate-count {} takes {}, and the machine has {} left",
                                     options_.generate_count,
                                     sifr::mib(bytes),
                                     sifr::mib(sifr::available_bytes())));
}

void Trainer::generate() {
  const sifr::Evaluation scope = engine_.evaluate(sifr::Residency::kWhole);
  if (!is_root()) return;
  print(options_.generate.value_or(""));
  const Sampling sampling{.count = options_.generate_count,
                          .temperature = options_.temperature,
                          .seed = inputs_.seed()};
  model_.generate(engine_, prompt(), sampling, [&](std::int32_t token) {
    print(options_.generate ? std::string(1, static_cast<char>(token)) : fmt::format("{} ", token));
  });
  print("\n");
}

}  // namespace llama
