#include "engine/program/run_command.hpp"

#include "comm/launch_environment.hpp"
#include "engine/program/job.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace sifr::program {

void add_run_command(CLI::App& app, int& code) {
  const auto options = std::make_shared<JobOptions>();
  CLI::App* run =
      app.add_subcommand("run", "Starts a program as the ranks of one job on this host.");
  run->add_option("--ranks,-n", options->ranks, "How many processes to start")
      ->required()
      ->check(CLI::Range(1, LaunchEnvironment::kMostRanks));
  run->add_flag("--bind-cores", options->bind_cores, "Give each rank its own share of the cores");
  run->add_option(
      "--port", options->port, "Loopback port where the ranks meet (default: a free one)");
  run->add_option("program", options->command, "The program and its arguments, behind --")
      ->required();
  run->footer(
      "Output lines are prefixed by [rank]. SIGINT and SIGTERM are passed on; the same one again, "
      "a "
      "second later, kills\n"
      "the job. When a rank fails, the others are stopped: within seconds, after a signal within "
      "half a minute. The exit\n"
      "code is the first failing rank's (128 + signal if a signal killed it). "
      "OMP_WAIT_POLICY=PASSIVE is set where the ranks' OpenMP threads are "
      "more than the\n"
      "cores, unless you set it.");
  run->callback([options, &code] { code = run_job(*options); });
}

}  // namespace sifr::program
