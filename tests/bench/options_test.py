"""Benchmarks run at small sizes and refuse those that no machine has. Standard library only."""
import os
import resource
import subprocess
import sys
import unittest

TINY = "hidden=8,layers=1,heads=2,kv_heads=1,intermediate=8,vocab=16,tied=1"
LARGEST = str(2**63 - 1)
LLAMA, COLLECTIVES, OPTIMIZER, STEP = (sys.argv.pop(1) for _ in range(4))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class Options(unittest.TestCase):
    def test_a_model_smaller_than_the_squares_is_measured(self):
        done = run(LLAMA, "--shape", TINY, "--tokens", "2", "--rounds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("median ratio", done.stdout)

    def test_sizes_beyond_any_machine_are_refused_by_name(self):
        for program, option in ((COLLECTIVES, "--largest"), (OPTIMIZER, "--elements"), (STEP, "--elements")):
            done = run(program, option, LARGEST)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{option}: Value {LARGEST} not in range", done.stderr)

    def test_what_a_rank_cannot_allocate_is_told(self):
        if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 2**40:
            self.skipTest("this machine has the memory")
        done = run(COLLECTIVES, "--largest", str(2**40))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("collectives_bench: ", done.stderr)

    def test_ranks_without_threads_to_run_on_are_told(self):
        def within(mib, *arguments):
            """The benchmark's end where its address space is that small."""
            def limit():
                resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
                resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))  # of a thread, too

            return subprocess.run(
                [COLLECTIVES, *arguments], preexec_fn=limit, capture_output=True, text=True, timeout=60, check=False
            )

        if within(400, "--help").returncode != 0:
            self.skipTest("a sanitizer needs more addresses")
        # Where there is room for some of the threads, they wait for the others.
        ends = [within(mib, "--threads-as-ranks", "64", "--largest", "1024") for mib in range(400, 1600, 100)]
        self.assertLessEqual({done.returncode for done in ends}, {0, 1}, ends)
        self.assertGreater(len([done for done in ends if "collectives_bench: " in done.stderr]), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
