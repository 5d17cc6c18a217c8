"""A disk that is full or fills up costs what did not fit, with the file's name, and no older file."""
import os
import subprocess
import sys

from program import ProgramTest, config, main, read_safetensors

# Mounts a disk of $1 kB at $2 that nobody else sees, runs the rest, and leaves a copy of the disk at $3.
ON_DISK = """
mount -t tmpfs -o size="$1"k none "$2" || exit 77
disk=$2 copy=$3
shift 3
"$@"
code=$?
cp -r "$disk" "$copy"
exit $code
"""


def as_own_root(*command):
    return subprocess.run(["unshare", "-rm", *command], capture_output=True, text=True, timeout=120, check=False)


class FullDisk(ProgramTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("disk"))

    def run_on_disk(self, kilobytes, *arguments, expected=1, **keywords):
        """The lines on stderr; what was on the disk then lies in "left"."""
        places = (str(kilobytes), self.path("disk"), self.path("left"))
        done = as_own_root("sh", "-c", ON_DISK, "sh", *places, *self.arguments(config(), *arguments, **keywords))
        self.assertEqual(done.returncode, expected, done.stderr)
        return done.stderr.splitlines()

    def left(self):
        return sorted(os.listdir(self.path("left")))

    def test_metrics(self):
        lines = self.run_on_disk(4, "--metrics", self.path("disk/metrics"), steps=100, ranks=2)
        self.assertEqual(lines, [f"llama: {self.path('disk/metrics')}: cannot be written: No space left on device"])

    def test_logits(self):
        (line,) = self.run_on_disk(4, "--logits", self.path("disk/logits"), ranks=2)
        self.assertIn("disk/logits: cannot be written: needs 0.02 MiB, 0.01 MiB are free: No space left", line)
        self.assertEqual(self.left(), [])

    def test_a_save_for_which_there_is_no_room_is_warned_of_before_training(self):
        first, last = self.run_on_disk(64, "--save", self.path("disk/out"), ranks=2)
        told = "disk/out: cannot be written: needs 0.13 MiB, 0.06 MiB are free: No space left on device"
        self.assertIn(told + "; make room until it is saved", first)
        self.assertIn(told, last)
        self.assertEqual(self.left(), [])

    def test_what_travels_along_counts_too(self):
        self.run_program(config(), "--save", self.path("source"), steps=0)
        self.write("source/tokenizer.json", b"{}" * 100000)
        first, last = self.run_on_disk(160, "--save", self.path("disk/out"), model="source")
        for line in (first, last):
            self.assertIn("disk/out/tokenizer.json: cannot be written: No space left", line)
        self.assertEqual(self.left(), [])

    def test_training_goes_on_beside_a_disk_that_has_filled_up(self):
        saving = ("--save", self.path("disk/out"), "--save-every", "1")
        lines = self.run_on_disk(160, *saving, steps=3, ranks=2)
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("not saved after step 2, training goes on", lines[0])
        self.assertIn("No space left on device", lines[1])
        self.assertEqual(self.left(), ["out"])
        weights = read_safetensors(os.path.join(self.path("left"), "out", "model.safetensors"))
        self.assertEqual(len(weights), 2 * 9 + 3)


if __name__ == "__main__":
    if as_own_root("sh", "-c", "mount -t tmpfs none /mnt").returncode != 0:
        print("[skipped] no disk can be mounted here: unshare -rm is refused")
        sys.exit(0)
    main()
