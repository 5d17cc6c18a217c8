"""Runs the llama program in a folder of its own. Standard library only."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
from safetensors_file import as_floats, read_safetensors  # noqa: E402, F401

SHAPE = "hidden=32,layers=2,heads=4,kv_heads=2,intermediate=48,vocab=256,tied={tied}"
TEXT = "In the beginning God created the heaven and the earth. " * 40


def config(stage=3, bf16=False, micro=2, accumulation=2, **more):
    return {
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": accumulation,
        "bf16": {"enabled": bf16},
        "zero_optimization": {"stage": stage},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-2, "weight_decay": 0.1}},
        **more,
    }


class ProgramTest(unittest.TestCase):
    """A test of llama and `sifr run`, whose paths are the first two arguments, which main() takes."""

    program = ""
    launcher = ""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sifr-llama-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.write("text.txt", TEXT.encode())

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)

    def arguments(self, ds_config, *arguments, ranks=1, steps=3, model=None, tied=0, data="text.txt", length=16):
        self.write("ds_config.json", json.dumps(ds_config).encode())
        weights = ["--model", self.path(model)] if model else ["--shape", SHAPE.format(tied=tied)]
        return [
            self.program, "--config", self.path("ds_config.json"), *weights, "--data", self.path(data),
            "--steps", str(steps), "--sequence-length", str(length), *arguments,
            *(["--threads-as-ranks", str(ranks)] if ranks else []),
        ]  # fmt: skip

    def as_processes(self, ranks, *arguments, **keywords):
        """The same for ranks that are processes."""
        launch = [self.launcher, "run", "--ranks", str(ranks), "--"]
        return launch + self.arguments(*arguments, ranks=0, **keywords)

    def run_program(self, *arguments, expected=0, **keywords):
        done = subprocess.run(
            self.arguments(*arguments, **keywords), capture_output=True, text=True, timeout=120, check=False
        )
        self.assertEqual(done.returncode, expected, done.stdout[-2000:] + done.stderr)
        return done

    def start(self, *arguments, **keywords):
        """The running program, with a step done."""
        process = subprocess.Popen(
            self.arguments(*arguments, **keywords), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while not (line := process.stdout.readline()).startswith("step 1/"):
            self.assertTrue(line, "the program has ended")
        return process

    def end(self, process, expected):
        """Waits for it: the lines on stderr."""
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, expected, stdout[-2000:] + stderr)
        return stderr.splitlines()

    def metrics(self, ds_config, *arguments, **keywords):
        """The lines of a run as dictionaries."""
        self.run_program(ds_config, "--metrics", self.path("metrics.jsonl"), *arguments, **keywords)
        with open(self.path("metrics.jsonl"), encoding="ascii") as file:
            return [json.loads(line) for line in file]


def main():
    ProgramTest.program = os.path.abspath(sys.argv.pop(1))
    ProgramTest.launcher = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
