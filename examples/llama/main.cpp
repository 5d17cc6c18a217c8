// Trains a Llama on sifr; --help tells the command line, the README an example.
#include "examples/llama/console.hpp"
#include "examples/llama/outputs.hpp"
#include "examples/llama/oversubscription.hpp"
#include "examples/llama/ranks.hpp"
#include "examples/llama/trainer.hpp"

#include <atomic>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;

// A file of ours in the place of a closed standard stream would take what is printed there.
void fill_closed_streams() {
  int descriptor = STDIN_FILENO;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO)
    descriptor = open("/dev/null", O_RDWR);
  if (descriptor >= 0) close(descriptor);
}

int run(const llama::Options& options) {
  llama::require_one_kind_of_ranks(options.threads_as_ranks,
                                   sifr::LaunchEnvironment::from_environment());
  llama::require_separate_outputs(options);
  llama::SignalWatch signals;
  const llama::Inputs inputs(options);
  std::atomic<bool> is_interrupted = false;
  const auto body = [&](sifr::Context& context) {
    const std::string warning = llama::oversubscription(context, options.threads);
    if (context.rank() == 0 && !warning.empty()) llama::warn(warning);
    llama::Trainer trainer(context, options, inputs, signals);
    if (trainer.run() == llama::End::kInterrupted) is_interrupted = true;
  };
  const sifr::ContextOptions limited{.limits = {.device = options.memory_limit}};
  llama::run_ranks(options.threads_as_ranks, body, limited);
  return is_interrupted ? kExitInterrupted : 0;
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit (ulimit -f) is an error that tells its name
  try {
    const llama::ParsedOptions parsed = llama::parse_options(argc, argv);
    const int exit_code = parsed.options ? run(*parsed.options) : parsed.exit_code;
    llama::require_printed();
    return exit_code;
  } catch (const sifr::UsageError& error) {  // here the call is the command line
    llama::warn(error.message());
    return kExitUsage;
  } catch (const sifr::Error& error) {
    llama::warn(error.message());
  } catch (const std::exception& error) {
    llama::warn(error.what());
  }
  return 1;
}
