#!/usr/bin/env bash
# Prints the Python that tests use: the oracles' if they are installed, else the first one with numpy, else any.
folder=${XDG_CACHE_HOME:-$HOME/.cache}/sifr/oracles
if cmp -s "$(dirname "$0")/requirements.txt" "$folder/installed.txt"; then
  echo "$folder/bin/python"
  exit 0
fi
for python in python3 /usr/bin/python3; do
  if $python -c 'import numpy' 2>/dev/null; then
    command -v $python
    exit 0
  fi
done
command -v python3
