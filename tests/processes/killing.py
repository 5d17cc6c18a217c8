"""What tests that kill have in common: a training, whom a job has started, what it leaves, and a histogram."""
import json
import os
import signal
import time

BOUND = 5.0  # seconds from a kill to the end of everything
MARK = "SIFR_KILL_TEST"  # the variable whose value marks the processes of a job


def prepare_llama(llama, folder, config, shape):
    """Writes what a training of the example Llama reads; the command, to which the number of steps is added."""
    path = lambda name: os.path.join(folder, name)
    with open(path("ds_config.json"), "w", encoding="ascii") as file:
        json.dump(config, file)
    with open(path("text"), "w", encoding="ascii") as file:
        file.write("In the beginning God created the heaven and the earth. " * 100)
    return [
        llama, "--config", path("ds_config.json"), "--shape", shape, "--data", path("text"), "--sequence-length", "16",
        "--steps",
    ]  # fmt: skip


def processes_of(job, variable=""):
    """Process ids whose environment carries this job's mark, and this `variable` ("NAME=value") if any."""
    wanted = [f"{text}\0".encode() for text in (f"{MARK}={job}", variable) if text]
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                environment = b"\0" + file.read()
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as stat:
                has_ended = stat.read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            continue
        if not has_ended and all(b"\0" + text in environment for text in wanted):
            found.append(int(entry))
    return found


def shared_memory():
    """What has a name. Abstract sockets and memfds live no longer than their processes."""
    return sorted(name for name in os.listdir("/dev/shm") if "sifr" in name)


def wait_for_end(job, start):
    """Seconds from `start` (of the monotonic clock) until no process of the job is left, or twice the bound."""
    while processes_of(job) and time.monotonic() < start + 2 * BOUND:
        time.sleep(0.005)
    return time.monotonic() - start


def left_behind(job, seconds):
    """What is wrong with a job that ended after so many seconds. Ends what is left of it."""
    problems = []
    left = processes_of(job)
    for process in left:
        os.kill(process, signal.SIGKILL)
    if seconds > BOUND:
        problems.append(f"ended after {seconds:.1f} s")
    if left:
        problems.append(f"processes left: {left}")
    if shared_memory():
        problems.append(f"left behind: {shared_memory()}")
    return problems


def print_histogram(times):
    print(f"{len(times)} kills; seconds from the kill to the end of the job:")
    tenths = [min(int(seconds * 10), 50) for seconds in times]
    for tenth in sorted(set(tenths)):
        count = tenths.count(tenth)
        print(f"  {tenth / 10:.1f}–{(tenth + 1) / 10:.1f} s  {count:3d}  {'#' * count}")
