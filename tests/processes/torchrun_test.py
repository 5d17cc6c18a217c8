"""Ranks that torchrun has started: the same weights as under `sifr run`, and an end where one is silent.

    torchrun_test.py SIFR LLAMA

Skips where PyTorch is not installed.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from killing import MARK, prepare_llama, processes_of

CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 2,
    "zero_optimization": {"stage": 3},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
}
TIMEOUT = 4  # seconds until a silent rank is told
SHAPE = "hidden=32,layers=2,heads=4,kv_heads=2,intermediate=48,vocab=256,tied=0"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--no-python"]
# It announces that it sets OMP_NUM_THREADS=1 unless somebody has set it.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def is_torch_installed():
    try:
        import torch.distributed.run  # noqa: F401
    except ImportError:
        return False
    return True


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


class Test:
    def __init__(self, sifr, llama, folder):
        self.sifr, self.llama, self.folder = sifr, llama, folder

    def weights_hash(self, launch):
        command = [*launch, *prepare_llama(self.llama, self.folder, CONFIG, SHAPE), "10", "--hash-weights"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=ENVIRONMENT)
        found = re.findall("weights_hash ([0-9a-f]{32})", done.stdout)
        if done.returncode != 0 or len(found) != 1:
            sys.exit(f"{' '.join(command)}: code {done.returncode}\n{done.stdout}{done.stderr}")
        return found[0]

    def same_weights(self):
        torchrun = self.weights_hash([*TORCHRUN, "--master-port", free_port()])
        ours = self.weights_hash([self.sifr, "run", "--ranks", "2", "--"])
        print(f"weights_hash {torchrun} under torchrun, {ours} under sifr run")
        return torchrun == ours

    def silent_rank(self):
        """Rank 1 is stopped in the middle; rank 0 tells so after comm_timeout, and torchrun ends the job."""
        job = f"{os.getpid()}-silent"
        log = os.path.join(self.folder, "log")
        train = prepare_llama(self.llama, self.folder, {**CONFIG, "sifr": {"comm_timeout": TIMEOUT}}, SHAPE)
        with open(log, "w", encoding="utf8") as output:
            launcher = subprocess.Popen(
                [*TORCHRUN, "--standalone", *train, "1000000"], stdout=output, stderr=subprocess.STDOUT,
                env={**ENVIRONMENT, MARK: job},
            )  # fmt: skip
        text = lambda: open(log, encoding="utf8").read()  # noqa: SIM115
        wait_until(lambda: "step 1/" in text() or launcher.poll() is not None)
        stopped = processes_of(job, "RANK=1")
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        wait_until(lambda: f"waited {TIMEOUT}.0 s" in text() or launcher.poll() is not None)
        for process in stopped:
            os.kill(process, signal.SIGCONT)
        code = launcher.wait(timeout=90)
        left = processes_of(job)
        is_told = re.search(rf"llama: rank 0 waited {TIMEOUT}\.0 s in .* for rank 1", text()) is not None
        if len(stopped) == 1 and code != 0 and is_told and not left:
            return True
        print(f"stopped {stopped}, code {code}, left {left}\n{text()}")
        return False


def wait_until(condition):
    end = time.monotonic() + 150  # PyTorch may come from a slow disk
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


def main():
    if not is_torch_installed():
        print("[skipped] PyTorch is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        test = Test(*sys.argv[1:3], folder)
        sys.exit(0 if test.same_weights() and test.silent_rank() else 1)


if __name__ == "__main__":
    main()
