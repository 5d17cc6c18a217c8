"""The quickstart's options, its criterion, and a short run; the whole one takes minutes and is for people.

    quickstart_test.py QUICKSTART FOLDER_OF_PROGRAMS [CASE…]
"""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.abspath(sys.argv.pop(1))
PROGRAMS = os.path.abspath(sys.argv.pop(1))


def run(*arguments):
    return subprocess.run(["bash", SCRIPT, *arguments], capture_output=True, text=True, timeout=60, check=False)


class Options(unittest.TestCase):
    def test_they_are_explained(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("--steps N", "--stage S", "(300)"):
            self.assertIn(text, done.stdout)

    def test_mistakes_are_named_before_anything_is_installed_or_built(self):
        for arguments, told in (
            (["--steps"], "--steps needs a whole number from 1 to 999999999, and '' was given"),
            (["--steps", "0"], "and '0' was given"),
            (["--steps", "1e3"], "and '1e3' was given"),
            (["--stage", "4"], "--stage needs 0, 1, 2 or 3, and '4' was given"),
            (["--stage", "1", "--step", "3"], "unknown option '--step'"),
            (["10"], "unknown option '10'"),
        ):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(told, done.stderr)


def write_program(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)


class Runs(unittest.TestCase):
    """In a folder of its own whose build is there already, so that nothing of the user's is touched."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        root = os.path.dirname(os.path.dirname(SCRIPT))
        for name in ("examples", "cmake"):
            os.symlink(os.path.join(root, name), os.path.join(self.folder.name, name))
        os.makedirs(os.path.join(self.folder.name, "build/release"))
        self.programs = os.path.join(self.folder.name, "build/release/bin")
        os.mkdir(os.path.join(self.folder.name, "path"))
        write_program(os.path.join(self.folder.name, "path/cmake"), "exit 0")

    def run_here(self, *arguments):
        environment = {**os.environ, "PATH": f"{self.folder.name}/path:{os.environ['PATH']}"}
        return subprocess.run(
            ["bash", os.path.join(self.folder.name, "examples/quickstart.sh"), *arguments],
            capture_output=True, text=True, errors="replace", timeout=300, check=False,
            env=environment,
        )  # fmt: skip

    def test_it_fails_unless_the_held_out_loss_is_low(self):
        os.mkdir(self.programs)
        for line, code, told in (
            ("held-out loss 2.4, unigram entropy 3.0, ratio 0.800", 0, "passed: "),
            ("held-out loss 2.5, unigram entropy 3.0, ratio 0.801", 1, "failed: "),
            ("the training has stopped", 1, "failed: "),
        ):
            write_program(os.path.join(self.programs, "sifr"), f"echo '{line}'")
            done = self.run_here()
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(told, done.stdout.splitlines()[-1])

    def test_it_says_whether_the_weights_are_those_of_the_run_before(self):
        os.mkdir(self.programs)
        told = []
        for digit in "aab":
            lines = (f"weights_hash {digit * 32}", "held-out loss 2.4, unigram entropy 3.0, ratio 0.800")
            write_program(os.path.join(self.programs, "sifr"), "\n".join(f"echo '{line}'" for line in lines))
            done = self.run_here()
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            told.append([line for line in done.stdout.splitlines() if line.startswith("weights_hash: ")])
        first, second, third = told
        self.assertEqual(first, [])
        self.assertEqual(second, [f"weights_hash: {'a' * 32}, of the run before: {'a' * 32} (equal)"])
        self.assertEqual(third, [f"weights_hash: {'b' * 32}, of the run before: {'a' * 32} (different)"])

    def test_a_short_run_trains_and_names_the_hash_of_the_run_before(self):
        os.symlink(PROGRAMS, self.programs)
        first, again = (self.run_here("--steps", "1", "--stage", stage) for stage in "30")
        for done in (first, again):
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("is not asked for below the default steps", done.stdout)
        line = next(line for line in again.stdout.splitlines() if line.startswith("weights_hash: "))
        self.assertRegex(line, r"\Aweights_hash: ([0-9a-f]{32}), of the run before: \1 \(equal\)\Z")


if __name__ == "__main__":
    unittest.main(verbosity=2)
