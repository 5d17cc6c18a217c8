#!/usr/bin/env bash
# install.sh oracles|readers: a virtual environment in the user's cache, made once. The oracles take 5 GB, since PyPI's
# PyTorch for Linux brings CUDA along; the readers, numpy and safetensors, 100 MB.
set -euo pipefail
cd "$(dirname "$0")"
folder=${XDG_CACHE_HOME:-$HOME/.cache}/sifr/$1
wanted=$(bash requirements.sh "$1")
if [ "$(cat "$folder/installed.txt" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
echo "installing into $folder: $(grep -v '#' <<<"$wanted" | tr '\n' ' ')"
rm -rf "$folder"
python3 -m venv "$folder"
patience=()
if [ "$1" = readers ]; then patience=(--retries 1 --timeout 10); fi # the suite goes on without them
"$folder/bin/pip" install --quiet --no-cache-dir "${patience[@]}" -r <(echo "$wanted")
echo "$wanted" >"$folder/installed.txt"
