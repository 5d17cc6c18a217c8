"""Kills ranks and launchers in every phase of a training run, and looks at what is left.

    kill_test.py SIFR KILL_RANK RUNS [SEED]

Each run: `sifr run --ranks 3`, one SIGKILL at a random moment of one phase. It fails unless the others end within
5 seconds of the kill with the cause in their last words, and no process or shared memory stays. Prints a
histogram of the times to the end.
"""
import os
import random
import subprocess
import sys
import tempfile
import time

PHASES = ["rendezvous", "arenas", "forward", "reduce", "update", "export"]
VICTIMS = ["0", "2", "launcher"]
BOUND = 5.0


def processes_of(job):
    """Process ids whose environment carries this job's mark."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if f"SIFR_KILL_TEST={job}\0".encode() in file.read():
                    with open(f"/proc/{entry}/stat") as stat:
                        if stat.read().rsplit(")", 1)[1].split()[0] != "Z":
                            found.append(int(entry))
        except OSError:
            continue
    return found


def shared_memory():
    """What has a name. Abstract sockets and memfds live no longer than their processes."""
    return sorted(name for name in os.listdir("/dev/shm") if "sifr" in name)


def run(sifr, program, phase, victim, delay, folder):
    """Seconds from the kill to the end of everything, and what the ranks and the launcher said."""
    job = f"{os.getpid()}-{phase}-{victim}-{delay}"
    mark = os.path.join(folder, job)
    with open(os.path.join(folder, "output"), "w+") as output:
        command = [sifr, "run", "--ranks", "3", "--", program, phase, victim, str(delay), mark]
        launcher = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=dict(os.environ, SIFR_KILL_TEST=job))
        code = launcher.wait(timeout=60)
        while processes_of(job) and time.monotonic() < float(open(mark).read()) + 2 * BOUND:
            time.sleep(0.005)
        seconds = time.monotonic() - float(open(mark).read())
        output.seek(0)
        text = output.read()
    left = processes_of(job)
    for process in left:
        os.kill(process, 9)
    problems = []
    if seconds > BOUND:
        problems.append(f"ended after {seconds:.1f} s")
    if left:
        problems.append(f"processes left: {left}")
    if shared_memory():
        problems.append(f"left behind: {shared_memory()}")
    if code != -9 if victim == "launcher" else code != 137:
        problems.append(f"the launcher's code is {code}")
    if victim != "launcher" and f"rank {victim} was killed by signal 9" not in text:
        problems.append("the launcher does not tell what happened")
    # While arenas are made, peers may still be joining, and know a process but no rank.
    cause = {"rendezvous": "", "arenas": "ended: "}.get(phase, f"ended: rank {victim} died")
    if victim != "launcher" and cause not in text:
        problems.append("no rank names the cause")
    return seconds, problems, text


def main():
    sifr, program, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    chance = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    histogram = {}
    failures = 0
    for number in range(runs):
        phase = PHASES[number % len(PHASES)]
        victim = VICTIMS[number // len(PHASES) % len(VICTIMS)]
        delay = chance.randrange(0, 20000 if phase in ("rendezvous", "arenas") else 4000)
        with tempfile.TemporaryDirectory() as folder:
            seconds, problems, text = run(sifr, program, phase, victim, delay, folder)
        histogram.setdefault(min(int(seconds * 10), 50), []).append(phase)
        if problems:
            failures += 1
            print(f"kill {number}: {phase}, victim {victim}, after {delay} us: {'; '.join(problems)}\n{text}")
    print(f"{runs} kills; seconds from the kill to the end of the job:")
    for tenth in sorted(histogram):
        print(f"  {tenth / 10:.1f}–{(tenth + 1) / 10:.1f} s  {len(histogram[tenth]):3d}  {'#' * len(histogram[tenth])}")
    sys.exit(1 if failures else 0)


main()
