#include "examples/llama/options.hpp"

#include "examples/llama/option_values.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <stdexcept>
#include <string_view>

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
  std::string generate;
  std::vector<std::string> hints;
};

void add_training(CLI::App& app, Options& options, Texts& texts) {
  StrictOptions strict(app);
  strict.path("--config", options.config, "the ds_config.json")->required();
  auto* shape = strict.text(
      "--shape",
      texts.shape,
      "random weights: 'hidden=…,layers=…,heads=…,kv_heads=…,intermediate=…,vocab=…,tied=0|1'");
  auto* model = strict.path("--model", options.model, "weights from a Hugging Face folder");
  shape->excludes(model);
  strict.path("--data", options.data, "what to learn: text or .bin (not with --steps 0)");
  strict.count("--steps", options.steps, 0, "optimizer steps")->required();
  strict.count("--sequence-length", options.sequence_length, 1, "predictions per sample (256)");
  strict.count("--stride", options.stride, 1, "tokens between samples (the sequence length)");
  strict.text("--order", texts.order, "sequential or shuffled samples (sequential)");
  strict.seed("--seed", options.seed, "of weights and order (the config's)");
  strict.threads(
      "--threads-as-ranks", options.threads_as_ranks, "ranks as threads of this process");
  strict.threads("--threads",
                 options.threads,
                 "of each rank's matrix products (1); part of the number format");
  strict.size("--memory-limit",
              options.memory_limit,
              "of each rank: bytes, or such as 9700KiB, 512MiB or 2GiB; the plan must fit");
  app.add_flag("--recompute", options.recompute, "keep only the blocks' inputs for backward");
  app.add_flag("--no-decay-norms", options.no_decay_norms, "no weight decay of norms' weights");
  app.add_option("--hint", texts.hints, "name=value that \"auto\" in the config stands for");
}

void add_results(CLI::App& app, Options& options, Texts& texts) {
  StrictOptions strict(app);
  strict.path("--metrics", options.metrics, "a line of JSON per step; the file is made anew");
  app.add_flag("--hash-weights", options.hash_weights, "the weights' hash after every step");
  auto* save = strict.path("--save", options.save, "write a Hugging Face folder at the end");
  app.add_flag("--save-masters", options.save_masters, "save the fp32 masters")->needs(save);
  strict.count("--save-every", options.save_every, 1, "also every N steps")->needs(save);
  auto* eval = strict.path("--eval-data", options.eval_data, "held-out data: its loss at the end");
  strict.count("--eval-every", options.eval_every, 1, "also every N steps")->needs(eval);
  auto* text = strict.text("--generate", texts.generate, "continue this text at the end");
  strict.tokens("--generate-tokens", options.generate_tokens, "continue these tokens: 1,2,3")
      ->excludes(text);
  strict.count("--generate-count", options.generate_count, 1, "tokens to generate (200)");
  strict.amount("--temperature", options.temperature, "of generation; 0: the likeliest token (0)");
  strict.path("--logits",
              options.logits,
              "write the first sample's logits before training, as safetensors");
}

void finish(Options& options, const Texts& texts) {
  if (texts.shape.empty() && options.model.empty())
    throw std::invalid_argument("--shape or --model is needed");
  if (options.data.empty() && (options.steps > 0 || !options.logits.empty()))
    throw std::invalid_argument("--data is required, except with --steps 0 and without --logits");
  if (!texts.shape.empty()) options.shape = parse_shape(texts.shape);
  for (const std::string& hint : texts.hints)
    sifr::parse_hint(hint, options.hints);
  if (options.stride == 0) options.stride = options.sequence_length;
  if (!texts.generate.empty()) options.generate = texts.generate;
  if (texts.order != "sequential" && texts.order != "shuffled") {
    throw std::invalid_argument("--order: needs sequential or shuffled, and '" + texts.order +
                                "' was given");
  }
  options.order = texts.order == "shuffled" ? Order::kShuffled : Order::kSequential;
}

ParsedOptions refused(std::string_view text) {
  std::cerr << text << "\nRun with --help for more information.\n";
  return {.options = {}, .exit_code = 2};
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  CLI::App app(kAbout, "llama");
  app.footer(kFooter);
  Options options;
  Texts texts;
  add_training(app, options, texts);
  add_results(app, options, texts);
  app.allow_extras();  // told by unexpected_arguments
  try {
    app.parse(argc, argv);
    if (const std::string text = unexpected_arguments(app); !text.empty()) return refused(text);
    finish(options, texts);
  } catch (const CLI::RequiredError& error) {
    // A misspelt option is the reason for one that is missing.
    const std::string text = unexpected_arguments(app);
    return refused(text.empty() ? error.what() : text);
  } catch (const CLI::ParseError& error) {
    return {.options = {}, .exit_code = app.exit(error) == 0 ? 0 : 2};
  } catch (const std::logic_error& error) {  // of a shape or a hint
    return refused(error.what());
  }
  return {.options = std::move(options), .exit_code = 0};
}

}  // namespace llama
