#!/usr/bin/env bash
# Installs requirements.txt into a virtual environment in the user's cache, once; 5 GB, since PyPI's PyTorch for
# Linux brings CUDA along.
set -euo pipefail
cd "$(dirname "$0")"
folder=${XDG_CACHE_HOME:-$HOME/.cache}/sifr/oracles
if cmp -s requirements.txt "$folder/installed.txt"; then exit 0; fi
echo "installing PyTorch and transformers into $folder"
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --no-cache-dir -r requirements.txt
cp requirements.txt "$folder/installed.txt"
