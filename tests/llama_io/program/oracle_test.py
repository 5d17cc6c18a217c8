"""Twenty steps of the tiny Llama follow PyTorch's, whatever the stage and the number of ranks.

The second argument is the folder with tiny_llama.json (losses, gradient norms and the distances that are accepted) and
tiny_llama/, its weights.
"""
import json
import os
import struct
import sys

from program import ProgramTest, as_floats, main, read_safetensors

FOLDER = os.path.abspath(sys.argv.pop(2))
SPLITS = ((1, 2, 2), (2, 1, 2), (4, 1, 1))  # ranks, micro-batch, accumulation: four rows a step


class Oracle(ProgramTest):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(FOLDER, "tiny_llama.json"), encoding="ascii") as file:
            cls.facts = json.load(file)

    def setUp(self):
        super().setUp()
        tokens = [token for batch in self.facts["micro_batches"] for row in batch for token in row]
        header = struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253)
        self.write("rows.bin", header + struct.pack(f"<{len(tokens)}H", *tokens))

    def config(self, stage, bf16, micro, accumulation):
        training = self.facts["training"]
        return {
            "train_micro_batch_size_per_gpu": micro,
            "gradient_accumulation_steps": accumulation,
            "gradient_clipping": training["clipping"],
            "bf16": {"enabled": bf16},
            "zero_optimization": {"stage": stage},
            "optimizer": {
                "type": "AdamW",
                "params": {
                    "lr": training["lr"],
                    "betas": [training["beta1"], training["beta2"]],
                    "eps": training["eps"],
                    "weight_decay": training["weight_decay"],
                },
            },
        }

    def steps(self, stage, bf16, split, *arguments, steps=20):
        ranks, micro, accumulation = split
        model = os.path.join(FOLDER, "tiny_llama")
        settings = self.config(stage, bf16, micro, accumulation)
        return self.metrics(
            settings, "--stride", "32", *arguments, length=31, ranks=ranks, model=model, data="rows.bin", steps=steps
        )

    def compare(self, dtype, accepted_loss, accepted_norm):
        met = 0
        expected = self.facts[dtype]["steps"]
        for split in SPLITS:
            for stage in range(4):
                lines = self.steps(stage, dtype == "bfloat16", split)
                self.assertEqual(len(lines), len(expected))
                for line, step in zip(lines, expected):
                    where = f"stage {stage}, {split[0]} ranks, step {line['step']}"
                    self.assertLess(abs(line["loss"] / step["loss"] - 1), accepted_loss, where)
                    norm = line["gradient_norm"] / step["gradient_norm"]
                    self.assertLess(abs(norm - 1), accepted_norm, where)
                met += 1
        print(f"{dtype}: met {met} of {len(SPLITS) * 4} cases")

    def test_fp32_follows(self):
        accepted = self.facts["accept"]
        self.compare("float32", accepted["loss_relative"], accepted["gradient_norm_relative"])

    def test_bf16_follows(self):
        spread = self.facts["bfloat16_spread"]
        self.compare("bfloat16", 4 * spread["loss"], 4 * spread["gradient_norm"])

    def test_logits_agree(self):
        self.steps(3, False, SPLITS[1], "--logits", self.path("logits"), steps=0)
        dtype, shape, content = read_safetensors(self.path("logits"))["logits"]
        self.assertEqual(shape, [31, 256])
        expected = [value for row in self.facts["logits"][:31] for value in row]
        worst = max(abs(a - b) for a, b in zip(as_floats(dtype, content), expected))
        self.assertLess(worst, self.facts["accept"]["logit_absolute"])


if __name__ == "__main__":
    main()
