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
#include <string>
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

int explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::string word = unknown_word(app, error);
  if (word.empty()) {
    if (app.exit(error) != 0) return kUsage;
    return std::cout.flush() ? 0 : 1;  // the help or version that was asked for
  }
  fmt::print(stderr, "sifr: '{}' is unknown", word);
  if (app.get_subcommands().empty()) {
    fmt::print(stderr, "; the commands are:");
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      fmt::print(stderr, " {}", command->get_name());
  }
  fmt::print(stderr, "\nRun with --help for more information.\n");
  return kUsage;
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
      return explain(app, error);
    }
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sifr: {}\n", error.what());
    return kUsage;
  }
}
