#!/usr/bin/env bash
# check_format.sh ROOT: fails, with the lines, where clang-format 14 would change a source.
set -euo pipefail
if ! command -v clang-format-14 >/dev/null; then
  echo "[skipped] clang-format-14 is not installed"
  exit 0
fi
mapfile -d '' -t sources < <(find "$1" -mindepth 1 \( -name build -o -name '.*' \) -prune -o \
  \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' \) -print0)
if [ ${#sources[@]} = 0 ]; then
  echo "no source found in $1" >&2
  exit 1
fi
clang-format-14 --dry-run -Werror "${sources[@]}"
