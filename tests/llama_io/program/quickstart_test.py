"""The quickstart's options; what it trains takes minutes and is for people. Standard library only."""
import subprocess
import sys
import unittest

SCRIPT = sys.argv.pop(1)


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


if __name__ == "__main__":
    unittest.main(verbosity=2)
