"""Kills ranks and the launcher of a real training, and looks at what is left.

    kill_training_test.py SIFR LLAMA KILLS [SEED]

Each run trains the example Llama under `sifr run --ranks 3`, saving now and then; one SIGKILL meets rank 0, the last
rank or the launcher at any moment of a run's measured duration. It fails unless the others end within 5 seconds with
the cause in their last words, no process or shared memory stays, and what lies under the saved folder's name is whole.
"""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from killing import MARK, left_behind, prepare_llama, print_histogram, processes_of, wait_for_end

VICTIMS = ["0", "2", "launcher"]
SHAPE = "hidden=256,layers=4,heads=4,kv_heads=2,intermediate=512,vocab=256,tied=0"
TENSORS = 4 * 9 + 3
STEPS = 12
CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 2,
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 50000, "stage3_max_live_parameters": 300000},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
}


def folder_in_memory():
    """A save waits for its disk, and a rank that waits for one cannot end: of that time nobody knows the bound."""
    has_room = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 1 << 28
    return tempfile.TemporaryDirectory(dir="/dev/shm" if has_room else None)


class Training:
    """A run in a folder of its own."""

    def __init__(self, sifr, llama, folder, job):
        self.folder, self.job, self.start = folder, job, time.monotonic()
        path = lambda name: os.path.join(folder, name)
        command = [
            sifr, "run", "--ranks", "3", "--", *prepare_llama(llama, folder, CONFIG, SHAPE), str(STEPS),
            "--save", path("out"), "--save-every", "1", "--metrics", path("metrics"),
        ]  # fmt: skip
        with open(path("log"), "w", encoding="utf8") as log:
            environment = {**os.environ, MARK: job}
            self.launcher = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)

    def text(self):
        with open(os.path.join(self.folder, "log"), encoding="utf8") as file:
            return file.read()

    def kill(self, victim):
        """The victim's process, or None where the run was over before."""
        while self.launcher.poll() is None:
            found = [self.launcher.pid] if victim == "launcher" else processes_of(self.job, f"SIFR_RANK={victim}")
            for process in found:
                try:
                    os.kill(process, signal.SIGKILL)
                    return process
                except ProcessLookupError:
                    break
            time.sleep(0.001)  # it is not there yet, or no longer
        return None

    def phase(self):
        text = self.text()
        if any(name.startswith(".out.partial-") for name in os.listdir(self.folder)):
            return "in a save"
        if "ZeRO stage" not in text:
            return "before the group was made"
        if "step 1/" not in text:
            return "before the first step"
        return "at the end" if f"step {STEPS}/{STEPS}" in text else "between two steps"


def problems_of_folder(folder):
    """What is wrong with a saved model, if there is one."""
    if not os.path.exists(folder):
        return []
    try:
        with open(os.path.join(folder, "config.json"), encoding="ascii") as file:
            json.load(file)
        with open(os.path.join(folder, "model.safetensors"), "rb") as file:
            content = file.read()
        (length,) = struct.unpack_from("<Q", content)
        header = json.loads(content[8 : 8 + length])
        header.pop("__metadata__", None)
        end = max(tensor["data_offsets"][1] for tensor in header.values())
        if len(header) == TENSORS and 8 + length + end == len(content):
            return []
        return [f"the saved folder has {len(header)} tensors and {len(content)} bytes"]
    except (OSError, ValueError) as error:
        return [f"the saved folder is not whole: {error}"]


def problems_of_end(victim, phase, code, text):
    if victim == "launcher":
        return [] if code == -signal.SIGKILL else [f"the launcher's code is {code}"]
    problems = []
    if code != 128 + signal.SIGKILL:
        problems.append(f"the launcher's code is {code}")
    if f"rank {victim} was killed by signal 9" not in text:
        problems.append("the launcher does not tell what happened")
    failures = [line for line in text.splitlines() if "] llama: " in line]
    # The others may not yet have begun to wait for it, or be done.
    if not failures and phase not in ("before the group was made", "at the end"):
        problems.append("no rank names a cause")
    if not all(f"rank {victim} died" in line for line in failures):
        problems.append("a rank names another cause")
    return problems


def kill_one(sifr, llama, victim, delay):
    """Seconds to the end, the phase, problems and the log; nothing if the run was over before."""
    with folder_in_memory() as folder:
        training = Training(sifr, llama, folder, f"{os.getpid()}-{victim}-{delay}")
        time.sleep(delay)
        process = training.kill(victim)
        start = time.monotonic()
        code = training.launcher.wait(timeout=60)
        if process is None:
            return None
        problems = left_behind(training.job, wait_for_end(training.job, start))
        seconds = time.monotonic() - start
        text = training.text()
        problems += problems_of_end(victim, training.phase(), code, text)
        problems += problems_of_folder(os.path.join(folder, "out"))
        return seconds, training.phase(), problems, text


def measured_duration(sifr, llama):
    with tempfile.TemporaryDirectory() as folder:
        training = Training(sifr, llama, folder, f"{os.getpid()}-whole")
        if training.launcher.wait(timeout=60) != 0 or problems_of_folder(os.path.join(folder, "out")):
            sys.exit(f"the training fails by itself:\n{training.text()}")
        return time.monotonic() - training.start


def main():
    sifr, llama, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
    chance = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    duration = measured_duration(sifr, llama)
    times, phases, failures, late = [], {}, 0, 0
    while len(times) < kills and late < 3 * kills:
        victim = VICTIMS[len(times) % len(VICTIMS)]
        delay = chance.uniform(0, duration)
        killed = kill_one(sifr, llama, victim, delay)
        if killed is None:
            late += 1
            continue
        seconds, phase, problems, text = killed
        times.append(seconds)
        phases[phase] = phases.get(phase, 0) + 1
        if problems:
            failures += 1
            print(f"kill {len(times)}: victim {victim} after {delay:.3f} s: {'; '.join(problems)}\n{text}")
    print(f"a run takes {duration:.2f} s; {late} were over before the kill")
    print("killed " + ", ".join(f"{phase}: {count}" for phase, count in sorted(phases.items())))
    print_histogram(times)
    sys.exit(1 if failures or len(times) < kills else 0)


if __name__ == "__main__":
    main()
