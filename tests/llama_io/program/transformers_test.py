"""transformers loads what --save writes, and computes the same logits."""
import json
import os

from program import TEXT, ProgramTest, as_floats, config, main, read_safetensors

try:
    import torch
    from transformers import AutoModelForCausalLM
except ImportError:
    print("[skipped] torch and transformers are not installed: bash tests/run.sh --oracles does that")
    raise SystemExit(0)


class Transformers(ProgramTest):
    def test_saved_models_compute_the_same_logits(self):
        met = 0
        for bf16, tied, steps in ((False, 0, 3), (False, 1, 3), (True, 0, 3)):
            self.run_program(config(bf16=bf16), "--save", self.path("m"), ranks=2, tied=tied, steps=steps)
            self.run_program(config(), "--logits", self.path("logits"), model="m", steps=0)
            dtype, shape, content = read_safetensors(self.path("logits"))["logits"]
            model = AutoModelForCausalLM.from_pretrained(self.path("m"), dtype=torch.float32)
            tokens = torch.tensor([list(TEXT.encode()[: shape[0]])])
            with torch.no_grad():
                expected = model(tokens).logits[0].flatten().tolist()
            worst = max(abs(a - b) for a, b in zip(as_floats(dtype, content), expected))
            self.assertLess(worst, 5e-5)
            met += 1
        print(f"met {met} of 3 cases")

    def test_the_config_is_read_as_written(self):
        self.run_program(config(bf16=True), "--save", self.path("m"), steps=0)
        model = AutoModelForCausalLM.from_pretrained(self.path("m"))
        self.assertEqual(model.dtype, torch.bfloat16)
        with open(os.path.join(self.path("m"), "config.json"), encoding="ascii") as file:
            self.assertEqual(model.config.hidden_size, json.load(file)["hidden_size"])


if __name__ == "__main__":
    main()
