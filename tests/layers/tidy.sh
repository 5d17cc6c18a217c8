#!/usr/bin/env bash
# tidy.sh [options] SOURCE -- COMPILER ARGUMENT...: clang-tidy that remembers what it found clean, as ccache
# remembers objects. CMake calls it beside each compilation in the preset tidy. The key is what a finding can depend
# on: the tool, its settings, and the source with its headers and comments as the compiler sees them.
set -euo pipefail
settings=$(cd "$(dirname "$0")/../.." && pwd)/.clang-tidy
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sifr/tidy

# Runs the compiler's command as preprocessor.
preprocess() {
  while [ "$1" != -- ]; do shift; done
  shift
  local command=()
  while [ $# -gt 0 ]; do
    case $1 in
      -o | -MF | -MT) shift ;;
      -MD | -c) ;;
      *) command+=("$1") ;;
    esac
    shift
  done
  "${command[@]}" -E -C -P
}

key=$({ clang-tidy-14 --version && cat "$settings" && preprocess "$@"; } | sha256sum | cut -d' ' -f1)
if [ -e "$cache/$key" ]; then exit 0; fi
clang-tidy-14 "$@"
mkdir -p "$cache"
touch "$cache/$key"
