#include "examples/llama/options.hpp"

#include <catch2/catch.hpp>

#include <initializer_list>

using namespace llama;

namespace {

constexpr const char* kShape =
    "hidden=8,layers=1,heads=2,kv_heads=1,intermediate=8,vocab=256,tied=1";

ParsedOptions parse(std::initializer_list<const char*> more) {
  std::vector<const char*> arguments = {"llama", "--config", "c", "--data", "d", "--steps", "5"};
  arguments.insert(arguments.end(), more);
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

Options parsed(std::initializer_list<const char*> more) {
  return parse(more).options.value();
}

}  // namespace

TEST_CASE("a short command line leaves the defaults", "[llama][options]") {
  const Options options = parsed({"--shape", kShape});
  CHECK(options.shape->tied);
  CHECK(options.steps == 5);
  CHECK(options.sequence_length == 256);
  CHECK(options.stride == 256);
  CHECK(options.order == Order::kSequential);
  CHECK_FALSE(options.seed);
  CHECK(options.threads == 1);
  CHECK(options.threads_as_ranks == 0);
  CHECK(options.metrics.empty());
}

TEST_CASE("a long command line is read", "[llama][options]") {
  const Options options = parsed({"--model",
                                  "m",
                                  "--sequence-length",
                                  "31",
                                  "--stride",
                                  "32",
                                  "--order",
                                  "shuffled",
                                  "--seed",
                                  "18446744073709551615",
                                  "--threads-as-ranks",
                                  "3",
                                  "--hint",
                                  "lr=1e-3",
                                  "--hint",
                                  "micro_batch=2",
                                  "--recompute",
                                  "--no-decay-norms",
                                  "--save",
                                  "s",
                                  "--save-masters",
                                  "--save-every",
                                  "10",
                                  "--generate-tokens",
                                  "1,2,3",
                                  "--generate-count",
                                  "7"});
  CHECK(options.model == "m");
  CHECK(options.stride == 32);
  CHECK(options.order == Order::kShuffled);
  CHECK(options.seed == 18446744073709551615U);
  CHECK(options.threads_as_ranks == 3);
  CHECK(options.hints.lr == 1e-3);
  CHECK(options.hints.micro_batch == 2);
  CHECK(options.recompute);
  CHECK(options.no_decay_norms);
  CHECK(options.save_masters);
  CHECK(options.save_every == 10);
  CHECK(options.generate_tokens == std::vector<std::int32_t>{1, 2, 3});
  CHECK(options.generate_count == 7);
}

TEST_CASE("mistakes on the command line end with exit code 2", "[llama][options]") {
  CHECK(parse({}).exit_code == 2);
  CHECK(parse({"--shape", kShape, "--model", "m"}).exit_code == 2);
  CHECK(parse({"--shape", "hidden=8"}).exit_code == 2);
  CHECK(parse({"--model", "m", "--hint", "lr=fast"}).exit_code == 2);
  CHECK(parse({"--model", "m", "--save-masters"}).exit_code == 2);
  CHECK(parse({"--model", "m", "--eval-every", "3"}).exit_code == 2);
  CHECK(parse({"--model", "m", "--generate", "a", "--generate-tokens", "1"}).exit_code == 2);
  CHECK(parse({"--model", "m", "--threads", "0"}).exit_code == 2);
  CHECK(parse({"--model", "m", "--help"}).exit_code == 0);
  CHECK_FALSE(parse({"--model", "m", "--help"}).options);
}
