#include "engine/program/run_command.hpp"
#include "sifr_version.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

constexpr int kUsage = 2;

// A job goes on when its output has no reader or no room any more, and descriptors of its own never
// take the place of a closed standard stream.
void settle_streams() {
  for (const int signal : {SIGPIPE, SIGXFSZ})
    std::signal(signal, SIG_IGN);
  int descriptor = STDIN_FILENO;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO)
    descriptor = open("/dev/null", O_RDWR);
  if (descriptor >= 0) close(descriptor);
}

/// The word that is no command and no option; empty if that is not the mistake. CLI11 by itself
/// tells what is missing, not what is misspelt instead.
std::string unknown_word(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> words = app.remaining(true);
  std::erase(words, "--");
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (code != CLI::ExitCodes::RequiredError && code != CLI::ExitCodes::ExtrasError) return "";
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  if (option != words.end()) return *option;
  return words.empty() ? "" : words.front();
}

/// Whether a word stands behind the program that `sifr run` is to start, and no -- before that: it
/// is likely the program's.
bool is_for_program(const std::string& word, const CLI::App& app, std::span<char*> arguments) {
  if (!app.got_subcommand("run")) return false;
  const auto program = app.get_subcommand("run")->get_option("program")->results();
  const auto position = [&](std::string_view one) {
    return std::find(arguments.begin(), arguments.end(), one);
  };
  return !program.empty() && position(program.front()) < position(word) &&
         position("--") == arguments.end();
}

int say_usage(std::string_view text) {
  std::string lines = "sifr: ";
  for (const char c : text)
    lines += c == '\n' ? "\nsifr: " : std::string(1, c);
  fmt::print(stderr, "{}\nsifr: run with --help for more information\n", lines);
  return kUsage;
}

int explain(const CLI::App& app, const CLI::ParseError& error, std::span<char*> arguments) {
  const std::string word = unknown_word(app, error);
  if (word.empty()) {
    if (error.get_exit_code() != 0) return say_usage(error.what());
    app.exit(error);
    return std::cout.flush() ? 0 : 1;  // the help or version that was asked for
  }
  std::string text = fmt::format("'{}' is unknown", word);
  if (is_for_program(word, app, arguments))
    text +=
        "; if it is the program's, put -- before the program: sifr run -n 2 -- program arguments";
  if (app.get_subcommands().empty()) {
    text += "; the commands are:";
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      text += ' ' + command->get_name();
  }
  return say_usage(text);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    settle_streams();
    CLI::App app("Runs and inspects training jobs of the sifr library.", "sifr");
    app.set_version_flag(
        "--version",
        fmt::format("sifr {}.{}.{}", SIFR_VERSION_MAJOR, SIFR_VERSION_MINOR, SIFR_VERSION_PATCH));
    app.require_subcommand(1);
    int code = 0;
    sifr::program::add_run_command(app, code);
    try {
      app.parse(count, arguments);
    } catch (const CLI::ParseError& error) {
      return explain(app, error, {arguments, static_cast<std::size_t>(count)});
    }
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sifr: {}\n", error.what());
    return kUsage;
  }
}
