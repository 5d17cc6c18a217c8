// Trains a Llama on sifr; --help tells the command line, the README an example.
#include "examples/llama/outputs.hpp"
#include "examples/llama/oversubscription.hpp"
#include "examples/llama/ranks.hpp"
#include "examples/llama/trainer.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
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
  llama::require_separate_outputs(options);
  llama::SignalWatch signals;
  const llama::Inputs inputs(options);
  std::atomic<bool> is_interrupted = false;
  llama::run_ranks(options.threads_as_ranks, [&](sifr::Context& context) {
    const std::string warning = llama::oversubscription(context, options.threads);
    if (context.rank() == 0) std::fputs(warning.c_str(), stderr);
    llama::Trainer trainer(context, options, inputs, signals);
    if (trainer.run() == llama::End::kInterrupted) is_interrupted = true;
  });
  return is_interrupted ? kExitInterrupted : 0;
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit (ulimit -f) is an error that tells its name
  try {
    const llama::ParsedOptions parsed = llama::parse_options(argc, argv);
    return parsed.options ? run(*parsed.options) : parsed.exit_code;
  } catch (const sifr::UsageError& error) {  // here the call is the command line
    std::fprintf(stderr, "llama: %s\n", error.message());
    return kExitUsage;
  } catch (const sifr::Error& error) {
    std::fprintf(stderr, "llama: %s\n", error.message());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llama: %s\n", error.what());
  }
  return 1;
}
