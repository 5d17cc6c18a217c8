#!/usr/bin/env bash
# Prints the Python that tests use: the oracles' if they are installed, else that of the readers of files, else the
# first one with numpy, else any.
cd "$(dirname "$0")" || exit 1
for name in oracles readers; do
  folder=${XDG_CACHE_HOME:-$HOME/.cache}/sifr/$name
  if cmp -s <(bash requirements.sh $name) "$folder/installed.txt"; then
    echo "$folder/bin/python"
    exit 0
  fi
done
for python in python3 /usr/bin/python3; do
  if $python -c 'import numpy' 2>/dev/null; then
    command -v $python
    exit 0
  fi
done
command -v python3 || true
