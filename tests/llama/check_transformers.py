"""check_transformers.py LLAMA SIFR DATA: transformers loads what the program LLAMA saves, with the same logits.

Skipped where torch or transformers cannot be imported.
"""

import pathlib
import sys
import tempfile

from check_program import Cases, Program, read_floats

RANDOM = "hidden=48,layers=2,heads=4,kv_heads=2,intermediate=80,vocab=256,tied="


def load(folder):
    """In fp32, whatever the file's dtype; nothing may be missing or left over."""
    import torch
    from transformers import AutoModelForCausalLM

    model, notes = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    wrong = {name: keys for name, keys in notes.items() if keys}
    if wrong:
        sys.exit(f"transformers loads {folder} with {wrong}")
    return model.eval()


def logits_of(model, tokens):
    import torch

    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].flatten().tolist()


def check(program, what, bf16, source, arguments=()):
    """Trains three steps on two ranks, saves, loads with both and compares."""
    cases = Cases(f"logits of transformers, {what}")
    saved = program.folder / what.replace(" ", "_")
    program.run(program.config(3, 2, bf16), 3, "--save", saved, *arguments, ranks=2, source=source)
    path = program.folder / "logits.safetensors"
    program.run(program.config(0, 1, False), 0, "--logits", path, length=program.row_length, source=["--model", saved])
    ours = read_floats(path)["logits"]
    model = load(saved)
    theirs = logits_of(model, list(program.text.read_bytes()[: program.row_length]))
    cases.equal(len(ours), len(theirs), "the number of logits")
    for place, (value, expected) in enumerate(zip(ours, theirs)):
        cases.near(value, expected, program.oracle["accept"]["logit_absolute"], f"logit {place}")
    from transformers import AutoConfig

    dtype = "bfloat16" if bf16 and "--save-masters" not in arguments else "float32"
    cases.equal(str(AutoConfig.from_pretrained(saved).dtype), f"torch.{dtype}", "dtype")
    cases.tell()


def main(llama, sifr, data):
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        print(f"[skipped] {error}: 'bash tests/run.sh --oracles' installs it")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        program = Program(llama, sifr, pathlib.Path(data), pathlib.Path(folder))
        check(program, "from a folder in fp32", False, None)
        check(program, "from a folder in bf16", True, None)
        check(program, "masters of bf16", True, None, ["--save-masters"])
        check(program, "from random weights, tied", False, ["--shape", RANDOM + "1"])
        check(program, "from random weights, untied in bf16", True, ["--shape", RANDOM + "0"])
    return 1 if Cases.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
