"""Kills ranks and launchers in every phase of a training run, and looks at what is left.

    kill_test.py SIFR KILL_RANK RUNS [SEED]

Each run: `sifr run --ranks 3`, one SIGKILL at a random moment of one phase. It fails unless the others end within
5 seconds of the kill with the cause in their last words, and no process or shared memory stays. Prints a
histogram of the times to the end.
"""
import os
import random
import re
import subprocess
import sys
import tempfile

from killing import MARK, left_behind, print_histogram, wait_for_end

PHASES = ["rendezvous", "arenas", "forward", "reduce", "update", "export"]
VICTIMS = ["0", "2", "launcher"]


def problems_of_causes(victim, causes):
    """What is wrong with the last words of the two others."""
    unknown = [cause for cause in causes if f"rank {victim} died" not in cause]
    if unknown:
        return [f"a rank names another cause: {unknown}"]
    return [] if len(causes) == 2 else [f"{len(causes)} of 2 ranks name the cause"]


def run(sifr, program, phase, victim, delay, folder):
    """Seconds from the kill to the end of everything, and what the ranks and the launcher said."""
    job = f"{os.getpid()}-{phase}-{victim}-{delay}"
    mark = os.path.join(folder, job)
    with open(os.path.join(folder, "output"), "w+") as output:
        command = [sifr, "run", "--ranks", "3", "--", program, phase, victim, str(delay), mark]
        environment = {**os.environ, MARK: job}
        launcher = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        code = launcher.wait(timeout=60)
        with open(mark, encoding="ascii") as file:
            seconds = wait_for_end(job, float(file.read()))
        output.seek(0)
        text = output.read()
    problems = left_behind(job, seconds)
    if code != -9 if victim == "launcher" else code != 137:
        problems.append(f"the launcher's code is {code}")
    if victim != "launcher" and f"rank {victim} was killed by signal 9" not in text:
        problems.append("the launcher does not tell what happened")
    if victim != "launcher":
        problems += problems_of_causes(victim, re.findall(r"^\[\d\] ended: (.*)", text, re.MULTILINE))
    return seconds, problems, text


def main():
    sifr, program, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    chance = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    combinations = [(phase, victim) for victim in VICTIMS for phase in PHASES]
    if runs < len(combinations):
        sys.exit(f"{runs} kills cannot meet all {len(combinations)} combinations of phase and victim")
    times = []
    failures = 0
    for number in range(runs):
        phase, victim = combinations[number % len(combinations)]
        delay = chance.randrange(0, 20000 if phase in ("rendezvous", "arenas") else 4000)
        with tempfile.TemporaryDirectory() as folder:
            seconds, problems, text = run(sifr, program, phase, victim, delay, folder)
        times.append(seconds)
        if problems:
            failures += 1
            print(f"kill {number}: {phase}, victim {victim}, after {delay} us: {'; '.join(problems)}\n{text}")
    print_histogram(times)
    sys.exit(1 if failures else 0)


main()
