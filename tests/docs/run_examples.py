"""run_examples.py BIN ROOT: what README and docs/porting.md say of their programs is true."""

import json
import pathlib
import subprocess
import sys
import tempfile

BIN, ROOT = map(pathlib.Path, sys.argv[1:])


def steps_of(*command):
    """The lines about steps that a program prints."""
    run = subprocess.run([BIN / command[0], *command[1:]], check=True, capture_output=True, text=True)
    lines = [line.removeprefix("[0] ") for line in run.stdout.splitlines()]
    return [line for line in lines if line.startswith("step ")]


def check_porting():
    before = steps_of("porting_before")
    assert len(before) == 6, before
    config = json.loads((ROOT / "examples/porting/ds_config.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        for stage in range(4):
            config["zero_optimization"]["stage"] = stage
            path = pathlib.Path(folder) / "ds_config.json"
            path.write_text(json.dumps(config))
            after = steps_of("porting_after", path)
            assert after == before, f"stage {stage}: {after} instead of {before}"
            two = steps_of("sifr", "run", "--ranks", "2", "--", BIN / "porting_after", path)
            of_two_ranks = two if stage == 0 else of_two_ranks
            assert len(two) == 6 and two == of_two_ranks, f"stage {stage}: {two} instead of {of_two_ranks}"
    print("the ported trainer prints the same digits at stages 0 to 3")


def check_minimal():
    losses = [float(line.split()[-1]) for line in steps_of("minimal", ROOT / "examples/minimal/ds_config.json")]
    assert losses[-1] < losses[0] / 100, losses
    print("the minimal trainer converges:", *losses)


def check_usage():
    for name in ("minimal", "porting_before", "porting_after"):
        for arguments, code in ((["--help"], 0), (["--nonsense"], 2), (["a", "b"], 2)):
            run = subprocess.run([BIN / name, *arguments], capture_output=True, text=True, timeout=60, check=False)
            usage = run.stdout if code == 0 else run.stderr
            assert (run.returncode, usage.startswith(f"usage: {name}")) == (code, True), (name, arguments, run)
    print("--help tells the usage, and what is no argument ends with it")


check_usage()
check_porting()
check_minimal()
