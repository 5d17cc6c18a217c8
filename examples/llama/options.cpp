#include "examples/llama/options.hpp"

#include <CLI/CLI.hpp>

#include <stdexcept>

namespace llama {
namespace {

constexpr const char* kAbout =
    "Trains a Llama on sifr. One rank alone, or more: --threads-as-ranks N, or processes under\n"
    "'sifr run --ranks N -- llama …' or torchrun.";

constexpr const char* kFooter =
    "Data: a text, whose bytes are the tokens (vocab=256), or a .bin in llm.c's format.\n"
    "Ctrl-C ends the step on all ranks, saves if --save is given, and exits with 130.";

/// Texts that need a second reading after CLI11's.
struct Texts {
  std::string shape;
  std::string order = "sequential";
  std::vector<std::string> hints;
};

void add_training(CLI::App& app, Options& options, Texts& texts) {
  app.add_option("--config", options.config, "the ds_config.json")->required();
  auto* shape = app.add_option(
      "--shape",
      texts.shape,
      "random weights: 'hidden=…,layers=…,heads=…,kv_heads=…,intermediate=…,vocab=…,tied=0|1'");
  auto* model = app.add_option("--model", options.model, "weights from a Hugging Face folder");
  shape->excludes(model);
  app.add_option("--data", options.data, "what to learn: text or .bin")->required();
  app.add_option("--steps", options.steps, "optimizer steps")
      ->required()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--sequence-length", options.sequence_length, "predictions per sample (256)")
      ->check(CLI::PositiveNumber);
  app.add_option("--stride", options.stride, "tokens between samples (the sequence length)")
      ->check(CLI::PositiveNumber);
  app.add_option("--order", texts.order, "sequential or shuffled samples (sequential)")
      ->check(CLI::IsMember({"sequential", "shuffled"}));
  app.add_option("--seed", options.seed, "of weights and order (the config's)");
  app.add_option("--threads-as-ranks", options.threads_as_ranks, "ranks as threads of this process")
      ->check(CLI::Range(1, 1024));
  app.add_option("--threads",
                 options.threads,
                 "of each rank's matrix products (1); part of the number format")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--recompute", options.recompute, "keep only the blocks' inputs for backward");
  app.add_flag("--no-decay-norms", options.no_decay_norms, "no weight decay of norms' weights");
  app.add_option("--hint", texts.hints, "name=value that \"auto\" in the config stands for");
}

void add_results(CLI::App& app, Options& options) {
  app.add_option("--metrics", options.metrics, "a line of JSON per step; the file is made anew");
  app.add_flag("--hash-weights", options.hash_weights, "the weights' hash after every step");
  auto* save = app.add_option("--save", options.save, "write a Hugging Face folder at the end");
  app.add_flag("--save-masters", options.save_masters, "save the fp32 masters")->needs(save);
  app.add_option("--save-every", options.save_every, "also every N steps")
      ->needs(save)
      ->check(CLI::PositiveNumber);
  auto* eval =
      app.add_option("--eval-data", options.eval_data, "held-out data: its loss at the end");
  app.add_option("--eval-every", options.eval_every, "also every N steps")
      ->needs(eval)
      ->check(CLI::PositiveNumber);
  auto* text = app.add_option("--generate", options.generate, "continue this text at the end");
  app.add_option("--generate-tokens", options.generate_tokens, "continue these tokens: 1,2,3")
      ->delimiter(',')
      ->excludes(text);
  app.add_option("--generate-count", options.generate_count, "tokens to generate (200)")
      ->check(CLI::PositiveNumber);
  app.add_option("--temperature", options.temperature, "of generation; 0: the likeliest token (0)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--logits",
                 options.logits,
                 "write the first sample's logits before training, as safetensors");
}

void finish(Options& options, const Texts& texts) {
  if (texts.shape.empty() && options.model.empty())
    throw std::invalid_argument("--shape or --model is needed");
  if (!texts.shape.empty()) options.shape = parse_shape(texts.shape);
  for (const std::string& hint : texts.hints)
    sifr::parse_hint(hint, options.hints);
  if (options.stride == 0) options.stride = options.sequence_length;
  options.order = texts.order == "shuffled" ? Order::kShuffled : Order::kSequential;
  if (options.generate && options.generate->empty())
    throw std::invalid_argument("--generate needs at least one byte to continue");
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  CLI::App app(kAbout, "llama");
  app.footer(kFooter);
  Options options;
  Texts texts;
  add_training(app, options, texts);
  add_results(app, options);
  try {
    app.parse(argc, argv);
    finish(options, texts);
  } catch (const CLI::ParseError& error) {
    return {.options = {}, .exit_code = app.exit(error) == 0 ? 0 : 2};
  } catch (const std::logic_error& error) {  // of a shape or a hint
    std::cerr << error.what() << "\nRun with --help for more information.\n";
    return {.options = {}, .exit_code = 2};
  }
  return {.options = std::move(options), .exit_code = 0};
}

}  // namespace llama
