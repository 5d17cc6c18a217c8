"""The metrics file says what the README promises, and the same at every stage."""
import os
import re

from program import ProgramTest, as_floats, config, main, read_safetensors

KEYS = ["step", "loss", "gradient_norm", "lr", "loss_scale", "updated", "tokens", "tokens_per_second",
        "step_seconds", "memory"]  # fmt: skip
PURPOSES = ["weights", "gradients", "optimizer", "window", "bucket", "activation", "staging"]


class Metrics(ProgramTest):
    def test_a_line_has_every_key_in_order(self):
        lines = self.metrics(config(), ranks=2)
        self.assertEqual([line["step"] for line in lines], [0, 1, 2])
        for line in lines:
            self.assertEqual(list(line), KEYS)
            self.assertIs(line["updated"], True)
            self.assertEqual(line["tokens"], 2 * 2 * 2 * 16)
            self.assertEqual((line["lr"], line["loss_scale"]), (1e-2, 1))
            self.assertGreater(line["gradient_norm"], 0)
            self.assertAlmostEqual(line["tokens_per_second"] * line["step_seconds"], line["tokens"])
            for tier in ("device", "host"):
                memory = line["memory"][tier]
                self.assertEqual(list(memory), ["now", "peak", "by_purpose"])
                self.assertEqual(list(memory["by_purpose"]), PURPOSES)
                self.assertEqual(sum(memory["by_purpose"].values()), memory["now"])
                self.assertGreaterEqual(memory["peak"], memory["now"])
        self.assertGreater(lines[0]["memory"]["device"]["by_purpose"]["weights"], 0)

    def test_a_progress_line_names_its_numbers(self):
        first = self.run_program(config()).stdout.split("step 1/3")[1].splitlines()[0]
        self.assertRegex(first, r"loss [\d.]+  lr \S+  norm [\d.]+  \d+ tokens/s  device \d+ MiB  ETA ")

    def test_the_file_is_made_anew(self):
        self.metrics(config(), steps=3)
        self.assertEqual(len(self.metrics(config(), steps=1)), 1)

    def test_the_loss_falls(self):
        lines = self.metrics(config(bf16=True), steps=30, ranks=2)
        self.assertLess(lines[-1]["loss"], 0.6 * lines[0]["loss"])

    def test_every_stage_has_the_same_weights_and_losses(self):
        for bf16 in (False, True):
            runs = []
            for stage in range(4):
                lines = self.metrics(config(stage, bf16), "--hash-weights", ranks=2, tied=1)
                runs.append([(line["weights_hash"], line["loss"], line["gradient_norm"]) for line in lines])
            self.assertEqual(runs[1:], runs[:1] * 3)
            hashes = [line[0] for line in runs[0]]
            self.assertEqual(len(set(hashes)), 3)
            for text in hashes:
                self.assertRegex(text, re.compile(r"\A[0-9a-f]{32}\Z"))

    def test_a_step_reads_the_same_data_however_it_is_split(self):
        losses = []
        for ranks, micro, accumulation in ((1, 8, 1), (1, 2, 4), (2, 2, 2), (4, 1, 2)):
            for order in ("sequential", "shuffled"):
                settings = config(micro=micro, accumulation=accumulation)
                lines = self.metrics(settings, "--order", order, "--seed", "5", ranks=ranks)
                losses.append((order, [line["loss"] for line in lines]))
        for order in ("sequential", "shuffled"):
            first, *others = [values for which, values in losses if which == order]
            for values in others:
                for value, expected in zip(values, first):
                    self.assertAlmostEqual(value, expected, delta=2e-5)
        self.assertNotAlmostEqual(losses[0][1][0], losses[1][1][0], places=4)

    def test_the_seed_governs_weights_and_order(self):
        first = self.metrics(config(), "--seed", "1", "--hash-weights", steps=1)
        again = self.metrics(config(), "--seed", "1", "--hash-weights", steps=1)
        other = self.metrics(config(), "--seed", "2", "--hash-weights", steps=1)
        by_config = self.metrics(config(sifr={"seed": 1}), "--hash-weights", steps=1)
        self.assertEqual(first[0]["weights_hash"], again[0]["weights_hash"])
        self.assertEqual(first[0]["weights_hash"], by_config[0]["weights_hash"])
        self.assertNotEqual(first[0]["weights_hash"], other[0]["weights_hash"])

    def test_recomputing_changes_no_bit(self):
        plain = self.metrics(config(bf16=True), "--hash-weights", ranks=2)
        recomputed = self.metrics(config(bf16=True), "--hash-weights", "--recompute", ranks=2)
        self.assertEqual(
            [line["weights_hash"] for line in plain], [line["weights_hash"] for line in recomputed]
        )

    def test_norms_are_not_decayed_where_that_is_asked(self):
        settings = config(optimizer={"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 200}})
        weights = []
        for folder, options in (("decayed", []), ("kept", ["--no-decay-norms"])):
            self.run_program(settings, "--save", self.path(folder), *options, ranks=2, steps=1)
            weights.append(read_safetensors(os.path.join(self.path(folder), "model.safetensors")))
        norms = [name for name in weights[0] if "norm" in name]
        self.assertEqual(len(norms), 2 * 2 + 1)
        for name, decayed, kept in ((name, *(tensors[name] for tensors in weights)) for name in weights[0]):
            if name not in norms:
                self.assertEqual(decayed, kept, name)
                continue
            for value, undecayed in zip(as_floats(decayed[0], decayed[2]), as_floats(kept[0], kept[2])):
                self.assertAlmostEqual(undecayed, 1, delta=0.002)  # they begin at 1, and a step moves by lr
                self.assertAlmostEqual(value, 0.8, delta=0.002)  # 1 − lr · weight_decay

    def test_the_held_out_loss_is_told_as_often_as_asked(self):
        self.write("held_out.txt", b"And the earth was without form, and void; " * 40)
        held_out = ("--eval-data", self.path("held_out.txt"))
        losses, hashes = [], set()
        for options in ((), ("--eval-every", "2")):
            done = self.run_program(config(), *held_out, *options, "--hash-weights", ranks=2, steps=5)
            losses.append(re.findall(r"held-out loss ([\d.]+)", done.stdout))
            hashes.add(re.search(r"weights_hash (\w+)", done.stdout)[1])
        at_end, every_other = losses
        self.assertEqual(len(at_end), 1)
        self.assertEqual(len(set(every_other)), 3)  # after steps 2, 4 and 5
        self.assertEqual(every_other[-1:], at_end)
        self.assertEqual(len(hashes), 1)


if __name__ == "__main__":
    main()
