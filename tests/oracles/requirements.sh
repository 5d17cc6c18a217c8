#!/usr/bin/env bash
# requirements.sh oracles|readers: what is installed for them. The readers of files are the small part of the oracles.
cd "$(dirname "$0")" || exit 1
if [ "$1" = oracles ]; then cat requirements.txt; else grep -E '^(numpy|safetensors)==' requirements.txt; fi
