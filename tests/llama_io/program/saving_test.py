"""What --save writes is a model that others read and that training goes on from."""
import json
import os
import resource
import signal
import struct
import subprocess
import sys

from program import ProgramTest, as_floats, config, main, read_safetensors


def round_to_bfloat16(value):
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]


def read_by_numpy(path):
    """name → (dtype, shape, bytes), each tensor mapped where the header says that it lies."""
    import numpy  # cmake/install_packages.sh brings it: this test runs everywhere

    length = int(numpy.fromfile(path, "<u8", 1)[0])
    header = json.loads(numpy.fromfile(path, "u1", length, offset=8).tobytes())
    tensors = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        bits = {"F32": "<u4", "BF16": "<u2"}[tensor["dtype"]]
        first = 8 + length + tensor["data_offsets"][0]
        values = numpy.memmap(path, bits, "r", first, tuple(tensor["shape"]))
        tensors[name] = (tensor["dtype"], tensor["shape"], values.tobytes())
    return tensors


def read_by_package(path):
    """The same by the safetensors package; None where it is not installed."""
    try:
        from safetensors import deserialize
    except ImportError:
        return None
    with open(path, "rb") as file:
        tensors = deserialize(file.read())
    return {name: (tensor["dtype"], tensor["shape"], bytes(tensor["data"])) for name, tensor in tensors}


def known_weights(like):
    """Values that the test makes, as (dtype, shape, bytes): other bits in each place of a tensor's first 65521."""
    known = {}
    for number, (name, (dtype, shape, content)) in enumerate(like.items()):
        size = 2 if dtype == "BF16" else 4
        whole = [(7919 * i + 31 * number) % 65521 for i in range(len(content) // size)]
        # 0x3F00…: 0.5 and more, a few low bits of each
        values = [0x3F00 + bits % 256 if size == 2 else 0x3F000000 + bits for bits in whole]
        known[name] = (dtype, shape, struct.pack(f"<{len(values)}{'H' if size == 2 else 'I'}", *values))
    return known


def write_safetensors(path, tensors):
    header, place = {}, 0
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + len(content)]}
        place += len(content)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(content for _, _, content in tensors.values()))


class Saving(ProgramTest):
    def weights(self, folder):
        return read_safetensors(os.path.join(self.path(folder), "model.safetensors"))

    def last_hash(self, done):
        return [line for line in done.stdout.splitlines() if line.startswith("weights_hash")][-1]

    def test_the_folder_has_config_and_all_tensors(self):
        self.run_program(config(bf16=True), "--save", self.path("out"), ranks=3)
        with open(os.path.join(self.path("out"), "config.json"), encoding="ascii") as file:
            written = json.load(file)
        self.assertEqual(written["model_type"], "llama")
        self.assertEqual(written["torch_dtype"], "bfloat16")
        self.assertEqual((written["hidden_size"], written["num_key_value_heads"]), (32, 2))
        tensors = self.weights("out")
        self.assertEqual(len(tensors), 2 * 9 + 3)
        self.assertEqual(tensors["model.layers.1.self_attn.k_proj.weight"][:2], ("BF16", [16, 32]))
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["config.json", "model.safetensors"])

    def test_the_weights_are_the_rounded_masters(self):
        settings = config(bf16=True)
        self.run_program(settings, "--save", self.path("weights"), ranks=2)
        self.run_program(settings, "--save", self.path("masters"), "--save-masters", ranks=2)
        weights, masters = self.weights("weights"), self.weights("masters")
        self.assertEqual(list(weights), list(masters))
        for name, (dtype, shape, content) in weights.items():
            self.assertEqual((masters[name][0], masters[name][1]), ("F32", shape))
            expected = [round_to_bfloat16(value) for value in as_floats("F32", masters[name][2])]
            self.assertEqual(as_floats(dtype, content), expected, name)

    def test_others_read_the_values_that_we_write(self):
        path = lambda folder: os.path.join(self.path(folder), "model.safetensors")
        for bf16, tied in ((False, 1), (True, 0)):
            self.run_program(config(bf16=bf16), "--save", self.path("known"), steps=0, tied=tied)
            known = known_weights(self.weights("known"))
            self.assertEqual({dtype for dtype, _, _ in known.values()}, {"BF16" if bf16 else "F32"})
            write_safetensors(path("known"), known)
            self.run_program(config(bf16=bf16), "--save", self.path("out"), model="known", steps=0, ranks=2)
            readings = {"numpy": read_by_numpy(path("out")), "safetensors": read_by_package(path("out"))}
            for reader, tensors in readings.items():
                if tensors is not None:
                    print(f"read by {reader}", end=" ", file=sys.stderr)
                    self.assertEqual(tensors, known)

    def test_training_goes_on_from_the_folder(self):
        for bf16, tied in ((False, 0), (True, 1)):
            saved = self.run_program(
                config(bf16=bf16), "--hash-weights", "--save", self.path("m"), "--save-masters", ranks=2, tied=tied
            )
            loaded = self.run_program(config(bf16=bf16), "--hash-weights", model="m", steps=0, ranks=3)
            self.assertEqual(self.last_hash(saved), self.last_hash(loaded))
            self.run_program(config(bf16=bf16), "--save", self.path("m"), model="m", steps=1)

    def test_the_tokenizer_travels_along(self):
        self.run_program(config(), "--save", self.path("one"), steps=0)
        self.write("one/tokenizer.json", b"{}")
        self.run_program(config(), "--save", self.path("two"), model="one", steps=1)
        self.assertIn("tokenizer.json", os.listdir(self.path("two")))

    def limited(self, *arguments, **keywords):
        """The run, with a step done, whose files may from then on not grow beyond 20 kB, as if the disk were full."""
        process = self.start(*arguments, **keywords)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20000, 20000))
        return process

    def test_a_limit_on_files_that_is_too_small_is_known_before_training(self):
        def limit_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        wanted = self.arguments(config(), "--save", self.path("out"), steps=10**9, ranks=2)
        done = subprocess.run(
            wanted, capture_output=True, text=True, timeout=60, check=False, preexec_fn=limit_files
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        told = r"out/model.safetensors: cannot be written: needs [0-9]{6} bytes, a file may have 100000 \(ulimit -f\)"
        self.assertRegex(done.stderr, told)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_a_full_disk_costs_no_older_save(self):
        self.run_program(config(), "--save", self.path("out"), steps=1)
        before = self.weights("out")
        process = self.limited(config(), "--save", self.path("out"), steps=10**6, ranks=2)
        process.send_signal(signal.SIGINT)
        (line,) = self.end(process, expected=1)
        self.assertIn("model.safetensors: cannot be written", line)
        self.assertEqual(self.weights("out"), before)
        self.assertEqual([name for name in os.listdir(self.folder) if "partial" in name], [])

    def test_training_goes_on_where_saving_between_steps_fails(self):
        saving = ("--save", self.path("out"), "--save-every", "2")
        process = self.limited(config(), *saving, steps=10**6, ranks=2)
        for _ in range(2):
            self.assertRegex(process.stderr.readline(), "not saved after step [0-9]*[02468], training goes on: ")
        process.send_signal(signal.SIGINT)
        self.assertIn("cannot be written", self.end(process, expected=1)[-1])

    def test_weights_are_saved_where_metrics_cannot_be_written(self):
        done = self.run_program(
            config(), "--metrics", "/dev/full", "--save", self.path("out"), steps=10**9, ranks=3, expected=1
        )
        self.assertEqual(done.stderr, "llama: /dev/full: cannot be written: No space left on device\n")
        self.assertEqual(len(self.weights("out")), 2 * 9 + 3)

    def test_weights_are_saved_where_a_gradient_is_not_finite(self):
        settings = config(optimizer={"type": "AdamW", "params": {"lr": 1e38}})
        done = self.run_program(settings, "--save", self.path("out"), steps=10, ranks=2, expected=1)
        self.assertRegex(done.stderr, "is not finite: weights are untouched")
        self.assertEqual(len(self.weights("out")), 2 * 9 + 3)

    def test_metrics_and_weights_that_cannot_be_written_are_both_told(self):
        wanted = ("--metrics", self.path("metrics"), "--save", self.path("out"))
        first, second = self.end(self.limited(config(), *wanted, steps=10**6, ranks=2), expected=1)
        self.assertRegex(first, "llama: not saved: .*model.safetensors: cannot be written")
        self.assertIn("metrics: cannot be written: File too large", second)

    def test_a_folder_with_other_files_is_not_replaced(self):
        os.mkdir(self.path("out"))
        self.write("out/thesis.tex", b"years of work")
        done = self.run_program(config(), "--save", self.path("out"), ranks=2, expected=1)
        self.assertIn("holds 'thesis.tex'", done.stderr)

    def test_a_folder_that_holds_the_run_is_not_replaced(self):
        os.mkdir(self.path("run"))
        self.write("run/vocab.json", b"In the beginning " * 40)
        done = self.run_program(config(), "--save", self.path("run"), data="run/vocab.json", expected=2)
        self.assertIn("the file of --data", done.stderr)
        self.assertEqual(os.listdir(self.path("run")), ["vocab.json"])

    def test_two_runs_do_not_save_into_one_folder(self):
        wanted = (config(), "--save", self.path("out"), "--metrics", self.path("m"))
        first = self.start(*wanted, steps=10**6)
        done = self.run_program(config(), "--save", self.path("out"), ranks=2, expected=1)
        self.assertIn("another run saves into it", done.stderr)
        first.terminate()
        self.end(first, expected=130)
        self.run_program(config(), "--save", self.path("out"), steps=1)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".")], [])

    def test_logits_are_those_of_the_first_sample(self):
        self.run_program(config(), "--logits", self.path("logits"), steps=0, ranks=2)
        dtype, shape, content = read_safetensors(self.path("logits"))["logits"]
        self.assertEqual((dtype, shape, len(content)), ("F32", [16, 256], 16 * 256 * 4))


if __name__ == "__main__":
    main()
