#include "examples/llama/options.hpp"

#include <catch2/catch.hpp>

#include <initializer_list>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>

using namespace llama;
using Catch::Matchers::Contains;

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

// What is told on stderr of an option's value that must be refused.
std::string refusal(std::initializer_list<const char*> more) {
  std::ostringstream told;
  std::streambuf* const before = std::cerr.rdbuf(told.rdbuf());
  const ParsedOptions result = parse(more);
  std::cerr.rdbuf(before);
  CHECK(result.exit_code == 2);
  CHECK_FALSE(result.options);
  return told.str();
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

TEST_CASE("what is no count within its range is refused by name", "[llama][options]") {
  const char* const name =
      GENERATE("--sequence-length", "--stride", "--save-every", "--eval-every", "--generate-count");
  const char* const value = GENERATE("",
                                     " ",
                                     "0",
                                     "-1",
                                     "1.5",
                                     "1e3",
                                     "0x10",
                                     "3x",
                                     "nan",
                                     "inf",
                                     "2147483648",
                                     "99999999999999999999");
  CHECK_THAT(refusal({"--model", "m", "--save", "s", "--eval-data", "e", name, value}),
             Contains(std::string(name) + ": needs a whole number from 1 to 2147483647, and '" +
                      value + "' was given"));
}

TEST_CASE("steps, threads, seeds and temperatures have their ranges", "[llama][options]") {
  const auto says = [](const char* name, const char* value, const std::string& allowed) {
    INFO(name << " '" << value << "'");
    CHECK_THAT(
        refusal({"--model", "m", name, value}),
        Contains(std::string(name) + ": needs " + allowed + ", and '" + value + "' was given"));
  };
  for (const char* value : {"", "-1", "nan", "5000", "0", "1 2"}) {
    says("--threads", value, "a whole number from 1 to 1024");
    says("--threads-as-ranks", value, "a whole number from 1 to 1024");
  }
  for (const char* value : {"", "-1", "1.0", "0x1", "18446744073709551616"})
    says("--seed", value, "a whole number from 0 to 18446744073709551615");
  for (const char* value : {"", "nan", "inf", "-inf", "-0.1", "1e999", "1,5", "0.5°"})
    says("--temperature", value, "a finite number, 0 or more");
  for (const char* value : {"", ",", "1,,2", "1,2,", ",1", "1,x", "-1", "2147483648", "1, 2"})
    says("--generate-tokens", value, "whole numbers with commas between, such as 1,2,3");
}

TEST_CASE("a memory limit is a whole number of bytes, KiB, MiB or GiB", "[llama][options]") {
  CHECK_FALSE(parsed({"--model", "m"}).memory_limit);
  const auto limit = [](const char* value) {
    return parsed({"--model", "m", "--memory-limit", value}).memory_limit;
  };
  CHECK(limit("1") == 1);
  CHECK(limit("9700KiB") == 9700 << 10);
  CHECK(limit("512MiB") == 512 << 20);
  CHECK(limit("2GiB") == std::int64_t{2} << 30);
  CHECK(limit("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  for (const char* value : {"",
                            "0",
                            "-1",
                            "0GiB",
                            "1.5GiB",
                            "2GB",
                            "2 GiB",
                            "GiB",
                            "2gib",
                            "2MiBGiB",
                            "2kiB",
                            "9007199254740992KiB",
                            "9223372036854775808",
                            "8589934592GiB",
                            "1e9",
                            "0x10"})
    CHECK_THAT(refusal({"--model", "m", "--memory-limit", value}),
               Contains("--memory-limit: needs a whole number of bytes, KiB, MiB or GiB") &&
                   Contains("and '" + std::string(value) + "' was given"));
}

TEST_CASE("data is needed where a step or the logits read it", "[llama][options]") {
  const auto exit_code = [](std::initializer_list<const char*> more) {
    std::vector<const char*> arguments = {"llama", "--config", "c", "--model", "m"};
    arguments.insert(arguments.end(), more);
    return parse_options(static_cast<int>(arguments.size()), arguments.data()).exit_code;
  };
  CHECK(exit_code({"--steps", "0", "--generate", "a"}) == 0);
  CHECK(exit_code({"--steps", "1", "--generate", "a"}) == 2);
  CHECK(exit_code({"--steps", "0", "--logits", "l"}) == 2);
  CHECK(exit_code({"--steps", "0", "--logits", "l", "--data", "d"}) == 0);
}

TEST_CASE("steps are counted in decimal digits", "[llama][options]") {
  const char* const value = GENERATE("", "-1", "1e3", "2147483648", "9223372036854775808");
  const char* arguments[] = {
      "llama", "--config", "c", "--data", "d", "--model", "m", "--steps", value};
  CHECK(parse_options(std::size(arguments), arguments).exit_code == 2);
  CHECK(parsed({"--model", "m", "--generate-count", "010"}).generate_count == 10);
}

TEST_CASE("an empty path or text is refused by name", "[llama][options][CKP17]") {
  for (const char* name : {"--save", "--metrics", "--eval-data", "--logits"})
    CHECK_THAT(refusal({"--model", "m", name, ""}), Contains(std::string(name) + ": needs a path"));
  CHECK_THAT(refusal({"--model", ""}), Contains("--model: needs a path, and '' was given"));
  CHECK_THAT(refusal({"--shape", ""}), Contains("--shape: needs at least one character"));
  CHECK_THAT(refusal({"--model", "m", "--generate", ""}), Contains("--generate: needs"));
  CHECK_THAT(refusal({"--model", "m", "--hint", ""}),
             Contains("hint \"\": write it as name=value"));
  CHECK_THAT(refusal({"--model", "m", "--order", ""}),
             Contains("--order: needs at least one character"));
  CHECK_THAT(refusal({"--model", "m", "--order", "random"}),
             Contains("--order: needs sequential or shuffled, and 'random' was given"));
}

TEST_CASE("an unknown option is named, with the one that was meant", "[llama][options]") {
  CHECK_THAT(refusal({"--model", "m", "--step", "3"}),
             Contains("unknown option --step; did you mean --steps?"));
  CHECK_THAT(refusal({"--model", "m", "--generate-tokns=1,2"}),
             Contains("unknown option --generate-tokns; did you mean --generate-tokens?"));
  CHECK_THAT(refusal({"--model", "m", "--batch-size", "3"}),
             Contains("unknown option --batch-size\n"));
  CHECK_THAT(refusal({"--model", "m", "-x"}), Contains("unknown option -x\n"));
  CHECK_THAT(refusal({"--model", "m", "more"}), Contains("unexpected argument 'more'"));
  const char* arguments[] = {
      "llama", "--config", "c", "--data", "d", "--model", "m", "--step", "3"};
  CHECK(parse_options(std::size(arguments), arguments).exit_code == 2);
}
