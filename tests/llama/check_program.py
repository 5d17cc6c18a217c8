"""check_program.py LLAMA SIFR DATA: trains DATA/tiny_llama with the program LLAMA, compares with DATA/tiny_llama.json.

On 1, 2 and 4 ranks and at every stage, in fp32 and bf16; at stages 1 and 3 the ranks are processes of `SIFR run`. The
json tells where its numbers come from and how they are meant; limits are its `accept` for fp32, and for bf16 4 times
the distance of two correct runs.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from safetensors_file import as_floats, read_safetensors  # noqa: E402

TIMEOUT = 120  # seconds for one training


class Cases:
    """Counts comparisons, and prints those that fail and how many were met."""

    failed = False

    def __init__(self, what):
        self.what, self.all, self.met, self.worst = what, 0, 0, 0.0

    def near(self, ours, theirs, limit, name):
        self.all += 1
        self.worst = max(self.worst, abs(ours - theirs) / limit)
        if abs(ours - theirs) <= limit:
            self.met += 1
        else:
            print(f"  {self.what}: {name} is {ours}, should be {theirs} within {limit}")

    def relative(self, ours, theirs, limit, name):
        self.near(ours, theirs, limit * abs(theirs), name)

    def equal(self, ours, theirs, name):
        self.near(0 if ours == theirs else math.inf, 0, 1, f"{name} ({ours}, {theirs})")

    def tell(self):
        Cases.failed |= self.met < self.all
        print(f"[oracle] program: {self.what}: {self.met} of {self.all} cases met, "
              f"the farthest at {self.worst:.3g} of its limit")


def read_floats(path):
    """Name → values."""
    return {name: as_floats(dtype, content) for name, (dtype, _, content) in read_safetensors(path).items()}


class Program:
    """The program, with the tiny model and its text."""

    def __init__(self, program, sifr, data, folder):
        self.program, self.sifr, self.data, self.folder = program, sifr, data, folder
        self.oracle = json.loads((data / "tiny_llama.json").read_text())
        rows = [row for micro_batch in self.oracle["micro_batches"] for row in micro_batch]
        self.row_length = len(rows[0])
        self.text = folder / "text"
        self.text.write_bytes(bytes(token for row in rows for token in row))

    def config(self, stage, ranks, bf16, accumulation=2):
        """Four rows a step: two micro-batches of two rows on one rank, on two of one row, on four one micro-batch."""
        training = self.oracle["training"]
        adam = {"lr": training["lr"], "betas": [training["beta1"], training["beta2"]], "eps": training["eps"],
                "weight_decay": training["weight_decay"]}
        return {
            "train_micro_batch_size_per_gpu": 2 if ranks == 1 else 1,
            "gradient_accumulation_steps": accumulation if ranks < 4 else 1,
            "gradient_clipping": training["clipping"],
            "optimizer": {"type": "AdamW", "params": adam},
            "bf16": {"enabled": bf16},
            # small enough that this model is cut, gathered and released
            "zero_optimization": {"stage": stage, "reduce_bucket_size": 5000, "stage3_prefetch_bucket_size": 20000,
                                  "stage3_param_persistence_threshold": 100, "stage3_max_live_parameters": 50000},
        }

    def run(self, config, steps, *arguments, ranks=1, processes=False, length=None, source=None):
        """The lines of the metrics. `source`: another model than the tiny one."""
        (self.folder / "ds_config.json").write_text(json.dumps(config))
        metrics = self.folder / "metrics.jsonl"
        start = [self.sifr, "run", "--ranks", str(ranks), "--", self.program]
        command = [*(start if processes else [self.program, "--threads-as-ranks", str(ranks)]),
                   "--config", self.folder / "ds_config.json", "--data", self.text, "--steps", str(steps),
                   *(source or ["--model", self.data / "tiny_llama"]),
                   "--sequence-length", str(length or self.row_length - 1), "--stride", str(self.row_length),
                   "--metrics", metrics, "--hash-weights", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return [json.loads(line) for line in metrics.read_text().splitlines()]


def compare_logits(program, ranks, stage):
    cases = Cases(f"logits in fp32, before training, ranks: {ranks}, stage {stage}")
    path = program.folder / "logits.safetensors"
    program.run(program.config(stage, ranks, False), 0, "--logits", path, ranks=ranks, length=program.row_length)
    ours = read_floats(path)["logits"]
    theirs = [value for position in program.oracle["logits"] for value in position]
    cases.equal(len(ours), len(theirs), "the number of logits")
    for place, (value, expected) in enumerate(zip(ours, theirs)):
        cases.near(value, expected, program.oracle["accept"]["logit_absolute"], f"logit {place}")
    cases.tell()


def values_of(facts, values):
    """Those that the facts name, beside them."""
    spread = [values[k * (len(values) - 1) // 7] for k in range(8)]
    return zip([*values[:8], *spread], [*facts["first"], *facts["spread"]])


def compare_gradients(cases, gradients, facts_of, accept):
    cases.equal(sorted(gradients), sorted(facts_of), "the gradients' names")
    for name, facts in facts_of.items():
        values = gradients[name]
        root_count = math.sqrt(len(values))
        norm = math.sqrt(math.fsum(value * value for value in values))
        cases.relative(norm, facts["norm"], accept["gradient_tensor_norm_relative"], f"gradient's norm of {name}")
        cases.near(math.fsum(values), facts["sum"], accept["tensor_sum_per_root_count"] * root_count,
                   f"gradient's sum of {name}")
        limit = accept["gradient_value_per_rms"] * facts["norm"] / root_count
        for ours, theirs in values_of(facts, values):
            cases.near(ours, theirs, limit, f"a gradient of {name}")


def compare_backward(program, ranks, stage):
    """The first micro-batch alone, as a step of its own; on two ranks a row each. The update is the gradient: lr·g / eps."""
    cases = Cases(f"loss and gradients of the first micro-batch in fp32, ranks: {ranks}, stage {stage}")
    config = program.config(stage, ranks, False, accumulation=1)
    config["optimizer"]["params"] = {"lr": 1e6, "betas": [0, 0], "eps": 1e6, "weight_decay": 0}
    config["gradient_clipping"] = 0
    saved = program.folder / f"backward_{ranks}_{stage}"
    line = program.run(config, 1, "--save", saved, "--save-masters", ranks=ranks)[0]
    facts, accept = program.oracle["backward"], program.oracle["accept"]
    cases.relative(line["loss"], facts["loss"], accept["loss_relative"], "loss")
    cases.relative(line["gradient_norm"], facts["gradient_norm"], accept["gradient_norm_relative"], "gradient norm")
    before = read_floats(program.data / "tiny_llama" / "model.safetensors")
    after = read_floats(saved / "model.safetensors")
    gradients = {name: [a - b for a, b in zip(before[name], after[name])] for name in after}
    compare_gradients(cases, gradients, facts["gradients"], accept)
    cases.tell()


def compare_steps(cases, lines, steps, limits, lr):
    cases.equal(len(lines), len(steps), "the number of steps")
    for k, (line, step) in enumerate(zip(lines, steps)):
        cases.relative(line["loss"], step["loss"], limits["loss"], f"loss of step {k}")
        cases.relative(line["gradient_norm"], step["gradient_norm"], limits["gradient_norm"], f"norm of step {k}")
        cases.equal((line["step"], line["updated"], line["lr"]), (k, True, lr), f"step {k}")


def compare_weights(cases, tensors, facts_of, accept):
    cases.equal(sorted(tensors), sorted(facts_of), "the tensors' names")
    for name, facts in facts_of.items():
        values = tensors[name]
        norm = math.sqrt(math.fsum(value * value for value in values))
        cases.relative(norm, facts["norm"], accept["tensor_norm_relative"], f"norm of {name}")
        limit = accept["tensor_sum_per_root_count"] * math.sqrt(len(values))
        cases.near(math.fsum(values), facts["sum"], limit, f"sum of {name}")
        for ours, theirs in values_of(facts, values):
            cases.near(ours, theirs, accept["value_absolute"], f"a value of {name}")


def compare_training(program, ranks, bf16):
    """At every stage; the stages among themselves to the bit."""
    oracle = program.oracle
    facts = oracle["bfloat16" if bf16 else "float32"]
    limits = {"loss": oracle["accept"]["loss_relative"], "gradient_norm": oracle["accept"]["gradient_norm_relative"]}
    if bf16:
        limits = {name: 4 * value for name, value in oracle["bfloat16_spread"].items()}
    hashes = {}
    for stage in range(4):
        processes = stage % 2 == 1
        place = f"ranks: {ranks} {'processes' if processes else 'threads'}, stage {stage}"
        cases = Cases(f"{len(facts['steps'])} steps in {'bf16' if bf16 else 'fp32'}, {place}")
        folder = program.folder / f"saved_{ranks}_{stage}_{bf16}"
        lines = program.run(
            program.config(stage, ranks, bf16), len(facts["steps"]), "--save", folder, "--save-masters", ranks=ranks,
            processes=processes)
        compare_steps(cases, lines, facts["steps"], limits, oracle["training"]["lr"])
        if not bf16:
            compare_weights(cases, read_floats(folder / "model.safetensors"), facts["after"], oracle["accept"])
        hashes[stage] = lines[-1]["weights_hash"]
        cases.equal(hashes[stage], hashes[0], "weights_hash, and that of stage 0")
        cases.tell()


def main(llama, sifr, data):
    with tempfile.TemporaryDirectory() as folder:
        program = Program(llama, sifr, pathlib.Path(data), pathlib.Path(folder))
        for stage in range(4):
            for ranks in (1, 2, 4):
                compare_logits(program, ranks, stage)
            for ranks in (1, 2):  # that micro-batch has two rows
                compare_backward(program, ranks, stage)
        for bf16 in (False, True):
            for ranks in (1, 2, 4):
                compare_training(program, ranks, bf16)
    return 1 if Cases.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
