#!/usr/bin/env bash
# Installs the Debian 12 packages that sifr is built with. Needs neither root nor network where none is missing.
set -euo pipefail

build="g++ cmake ninja-build nlohmann-json3-dev libfmt-dev libcli11-dev libboost1.81-dev
  libdnnl-dev catch2 bible-kjv python3 python3-numpy"
tests="ccache clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev patch python3-venv"

usage() {
  cat <<END
usage: bash cmake/install_packages.sh [--tests] [--list]
  --tests  also what tests/run.sh needs beyond a build: clang 14, its checkers, ccache
  --list   print the names and install nothing
END
}

wanted=$build
list=no
for argument in "$@"; do
  case $argument in
    --tests) wanted="$build $tests" ;;
    --list) list=yes ;;
    --help | -h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
done
read -r -d '' -a packages <<<"$wanted" || true
if [ $list = yes ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

find_missing() {
  missing=()
  for package in "${packages[@]}"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      missing+=("$package")
    fi
  done
}

find_missing
if [ ${#missing[@]} = 0 ]; then exit 0; fi
echo "missing Debian packages: ${missing[*]}"

as_root=()
if [ "$(id -u)" != 0 ]; then as_root=(sudo); fi
if ! command -v apt-get >/dev/null || ! command -v "${as_root[0]:-sh}" >/dev/null; then
  echo "cannot install them: this needs Debian's apt-get and root or sudo. Install by hand: ${missing[*]}" >&2
  exit 1
fi
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}
# The first try fails where the package lists are missing or old.
install >/dev/null 2>&1 || { "${as_root[@]}" apt-get update -qq && install; } || true
find_missing
if [ ${#missing[@]} != 0 ]; then
  echo "could not install: ${missing[*]}" >&2
  exit 1
fi
echo "installed"
