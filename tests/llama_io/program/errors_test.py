"""Mistakes end with one clean message and the right exit code, on any number of ranks."""
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

from program import SHAPE, TEXT, ProgramTest, config, main


class Errors(ProgramTest):
    def failure(self, *arguments, expected=1, **keywords):
        """The one line on stderr."""
        lines = self.run_program(*arguments, expected=expected, **keywords).stderr.splitlines()
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def test_the_command_line_is_explained(self):
        done = subprocess.run([self.program, "--help"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0)
        for name in ("--config", "--shape", "--model", "--stride", "--save-masters", "--generate-tokens", "--memory-limit"):
            self.assertIn(name, done.stdout)

    def test_an_output_that_cannot_be_written_is_an_error_at_the_end(self):
        told = "llama: standard output: cannot be written: full, or closed by its reader\n"
        generating = ("--generate", "In", "--generate-count", "9", "--save", self.path("out"))
        for command in (
            [self.program, "--help"],
            self.arguments(config(), ranks=2, steps=60),
            self.arguments(config(), *generating, ranks=2),
        ):
            with open("/dev/full", "wb") as full:
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (1, told), command)
        self.run_program(config(), model="out", steps=1)  # it was saved all the same

    def test_mistakes_on_the_command_line_exit_with_2(self):
        for arguments in (
            ["--stpes", "3"],
            ["--order", "random"],
            ["--stride", "0"],
            ["--save-every", "3"],
            ["--hint", "learning_rate=1"],
            ["--generate", ""],
            ["--model", "x"],
        ):
            done = self.run_program(config(), *arguments, expected=2)
            self.assertIn("--help", done.stderr + done.stdout, arguments)

    def test_a_misspelt_option_is_named_not_the_one_that_is_missing(self):
        done = subprocess.run([self.program, "--step", "3"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown option --step; did you mean --steps?\n", done.stderr)

    def test_files_that_are_missing_or_wrong_are_named(self):
        self.assertIn("nothing.txt: cannot be opened", self.failure(config(), data="nothing.txt"))
        self.write("raw.bin", struct.pack("<4H", 1, 2, 3, 4))
        self.assertIn("20240520", self.failure(config(), data="raw.bin"))
        header = struct.pack("<256i", 20240520, 1, 40, *[0] * 253)
        self.write("large.bin", header + struct.pack("<40H", *range(230, 270)))
        self.assertIn("token 256 at place 26", self.failure(config(), data="large.bin", ranks=2))
        self.write("short.txt", b"short")
        self.assertIn("too few for one sample", self.failure(config(), data="short.txt"))
        self.assertIn("is not a folder", self.failure(config(), model="none"))

    def test_a_wrong_config_tells_the_place(self):
        wrong = config()
        wrong["zero_optimization"]["stgae"] = 3
        done = self.run_program(wrong, ranks=2, expected=1)
        self.assertIn("stgae", done.stderr)
        self.assertIn("stage", done.stderr)

    def test_more_threads_than_cores_are_told(self):
        """[PRF08]"""
        cores = len(os.sched_getaffinity(0))
        threads = max(2, cores)
        for ranks in (2, 3):
            done = self.run_program(config(), "--threads", str(threads), ranks=ranks, steps=1)
            self.assertIn(f"{ranks} ranks x {threads} threads on {cores} cores", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for threads in {1, cores}:
            self.assertEqual(self.run_program(config(), "--threads", str(threads), steps=1).stderr, "")

    def test_metrics_that_cannot_be_written_end_all_ranks(self):
        line = self.failure(config(), "--metrics", self.path("no/folder"), ranks=3)
        self.assertIn("cannot be created", line)
        line = self.failure(config(), "--metrics", "/dev/full", ranks=3)
        self.assertIn("/dev/full: cannot be written", line)

    def test_results_do_not_overwrite_what_is_read(self):
        for option in ("--metrics", "--logits"):
            line = self.failure(config(), option, self.path("text.txt"), expected=2)
            self.assertIn(f"{option} would overwrite", line)
            self.assertIn("the file of --data", line)
        with open(self.path("text.txt"), "rb") as file:
            self.assertEqual(file.read(), TEXT.encode())

    def test_data_that_is_cut_short_while_training_is_named(self):
        self.write("cut.txt", TEXT.encode() * 10)
        process = self.start(config(), "--save", self.path("out"), data="cut.txt", steps=10**6, ranks=2)
        os.truncate(self.path("cut.txt"), 10)
        self.assertRegex("\n".join(self.end(process, expected=1)), "cut.txt: has no byte [0-9]+ any more")
        self.run_program(config(), model="out", steps=1)  # it was saved

    def test_held_out_data_that_is_cut_short_while_training_is_named(self):
        for ranks in (1, 2):
            self.write("cut.txt", TEXT.encode() * 2)
            held_out = ("--eval-data", self.path("cut.txt"), "--eval-every", "1")
            process = self.start(config(), *held_out, "--save", self.path("out"), steps=10**6, ranks=ranks)
            os.truncate(self.path("cut.txt"), 10)
            self.assertRegex("\n".join(self.end(process, expected=1)), "cut.txt: has no byte [0-9]+ any more")
            self.run_program(config(), model="out", steps=1)  # it was saved
            shutil.rmtree(self.path("out"))

    def within(self, mib, command):
        """The command's end where its address space is that small."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
            resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))  # of a thread, too

        return subprocess.run(
            command, preexec_fn=limit, capture_output=True, text=True, timeout=60, check=False
        )

    def test_ranks_without_threads_to_run_on_are_told(self):
        if self.within(400, [self.program, "--help"]).returncode != 0:
            self.skipTest("a sanitizer needs more addresses")
        command = self.arguments(config(micro=1), ranks=64, steps=0)
        # Where there is room for some of the threads, they wait for the others.
        ends = [self.within(mib, command) for mib in range(400, 1600, 100)]
        self.assertLessEqual({done.returncode for done in ends}, {0, 1})
        told = [done for done in ends if re.search("--threads-as-ranks: .* cannot be started", done.stderr)]
        self.assertGreater(len(told), 2)

    def test_closed_standard_streams_take_no_file(self):
        command = self.arguments(config(), "--metrics", self.path("m"))
        done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], timeout=60, check=False)
        self.assertEqual(done.returncode, 0)
        with open(self.path("m"), encoding="ascii") as file:
            self.assertEqual([json.loads(line)["step"] for line in file], [0, 1, 2])

    def test_a_plan_beyond_the_memory_limit_is_refused_with_its_table(self):
        for ranks in (1, 2):
            done = self.run_program(config(), "--memory-limit", "100000", ranks=ranks, expected=1)
            self.assertRegex(done.stderr, "the plan needs .* of the limit of 0.10 MiB are free")
            self.assertRegex(done.stderr, "refused: [0-9.]+ MiB for optimizer")
        self.run_program(config(), "--memory-limit", "1GiB", ranks=2)

    def test_what_the_machine_cannot_hold_is_refused_before_training(self):
        wanted = ("--generate", "In", "--generate-count", str(2**31 - 1))
        self.assertIn("--generate-count 2147483647 takes ", self.failure(config(), *wanted, expected=2, ranks=2))
        large = self.failure(config(micro=2 * 10**9, accumulation=1), expected=2)
        self.assertIn("a micro-batch of 2000000000 samples of 17 tokens has more than", large)

    def test_a_prompt_that_the_model_cannot_read_is_refused(self):
        self.assertIn("no token 256", self.failure(config(), "--generate-tokens", "1,256", expected=2))
        self.write("tokens.bin", struct.pack("<256i", 20240520, 1, 40, *[0] * 253) + bytes(80))
        wide = ("--generate", "In the", "--shape", SHAPE.format(tied=0).replace("256", "300"))
        arguments = self.arguments(config(), *wide, data="tokens.bin")
        del arguments[3:5]  # the shape that all runs have
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("vocab=256, but the model has 300", done.stderr)


class Generation(ProgramTest):
    def test_a_model_that_is_not_trained_generates_without_data(self):
        arguments = self.arguments(config(), "--generate", "In the ", "--generate-count", "3", steps=0, ranks=2)
        place = arguments.index("--data")
        del arguments[place : place + 2]
        done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\nIn the ", done.stdout)

    def test_text_and_tokens_are_continued_alike(self):
        done = self.run_program(config(), "--generate", "In the ", "--generate-count", "12", steps=20, ranks=2)
        text = [line for line in done.stdout.splitlines() if line.startswith("In the ")][0]
        tokens = ",".join(str(byte) for byte in b"In the ")
        done = self.run_program(
            config(), "--generate-tokens", tokens, "--generate-count", "12", steps=20, ranks=2
        )
        numbers = [line for line in done.stdout.splitlines() if line and line[0].isdigit()][-1].split()
        self.assertEqual(bytes(map(int, numbers)).decode(), text[len("In the ") :])

    def test_held_out_loss_is_the_same_on_any_number_of_ranks(self):
        self.write("held.txt", b"And God said, Let there be light: and there was light. " * 7)
        losses = set()
        for ranks, micro in ((1, 4), (2, 2), (4, 1)):
            settings = config(micro=micro, accumulation=1)
            done = self.run_program(settings, "--eval-data", self.path("held.txt"), steps=0, ranks=ranks)
            losses.add([line for line in done.stdout.splitlines() if line.startswith("held-out")][0])
        self.assertEqual(len(losses), 1, losses)


class Processes(ProgramTest):
    def test_processes_compute_what_threads_compute(self):
        saving = ("--hash-weights", "--save", self.path("out"))
        threads = self.run_program(config(bf16=True), *saving, ranks=2)
        launched = self.as_processes(2, config(bf16=True), *saving)
        processes = subprocess.run(launched, capture_output=True, text=True, timeout=120, check=True)
        found = [re.findall("weights_hash ([0-9a-f]{32})", done.stdout) for done in (threads, processes)]
        self.assertEqual(found[0], found[1])
        self.assertEqual(len(found[0]), 1)

    def test_threads_as_ranks_of_launched_processes_are_refused(self):
        launched = [self.launcher, "run", "--ranks", "2", "--", *self.arguments(config(), ranks=2)]
        done = subprocess.run(launched, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        told = "these ranks are started by a launcher (sifr run, world size 2); leave out --threads-as-ranks or the launcher"
        self.assertIn(told, done.stderr)
        alone = [self.launcher, "run", "--ranks", "1", "--", *self.arguments(config(), ranks=2)]
        subprocess.run(alone, capture_output=True, timeout=120, check=True)

    def test_a_mistake_ends_all_processes(self):
        launched = self.as_processes(2, config(), "--metrics", "/dev/full")
        done = subprocess.run(launched, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/dev/full: cannot be written", done.stderr)


class Interruption(ProgramTest):
    def interrupt(self, which, command):
        """Sends the signal to all of the command's processes, as a terminal does, once two steps are done."""
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.addCleanup(process.kill)
        while process.poll() is None:
            time.sleep(0.05)
            try:
                with open(self.path("m"), encoding="ascii") as file:
                    if len(file.readlines()) >= 2:
                        break
            except FileNotFoundError:
                continue
        os.killpg(process.pid, which)
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, stdout + stderr)
        self.assertIn("interrupted after step", stdout)
        self.assertIn("memory of rank 0:", stdout)
        return stdout

    def check_saved(self, stdout):
        self.assertIn("saved", stdout)
        self.run_program(config(), model="out", steps=1)
        with open(self.path("m"), encoding="ascii") as file:
            self.assertTrue(file.read().endswith("}\n"))

    def test_ctrl_c_ends_the_step_and_saves(self):
        wanted = (config(), "--metrics", self.path("m"), "--save", self.path("out"))
        self.check_saved(self.interrupt(signal.SIGINT, self.arguments(*wanted, steps=10**6, ranks=2)))

    def test_ctrl_c_ends_processes_and_saves(self):
        wanted = (config(), "--metrics", self.path("m"), "--save", self.path("out"))
        self.check_saved(self.interrupt(signal.SIGINT, self.as_processes(2, *wanted, steps=10**6)))

    def test_a_request_to_end_is_heard_too(self):
        wanted = self.arguments(config(), "--metrics", self.path("m"), steps=10**6, ranks=2)
        self.assertNotIn("saved", self.interrupt(signal.SIGTERM, wanted))

    def test_what_is_told_at_the_end_is_told_without_what_takes_long(self):
        results = ("--hash-weights", "--generate", "In the ", "--eval-data", self.path("text.txt"))
        wanted = self.arguments(config(), "--metrics", self.path("m"), *results, steps=10**6, ranks=2)
        stdout = self.interrupt(signal.SIGINT, wanted)
        with open(self.path("m"), encoding="ascii") as file:
            last = json.loads(file.readlines()[-1])
        self.assertIn(f"weights_hash {last['weights_hash']}\n", stdout)
        self.assertNotIn("In the ", stdout)
        self.assertNotIn("held-out", stdout)


if __name__ == "__main__":
    main()
