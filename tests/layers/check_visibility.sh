#!/usr/bin/env bash
# check_visibility.sh ARCHIVE…: fails, with their names, where symbols of a room's own are visible in a shared library
# that sifr is linked into, and where those of its users are not.
set -euo pipefail
if ! command -v readelf >/dev/null; then
  echo "[skipped] readelf is not installed"
  exit 0
fi
# Defined and neither local nor hidden; names that headers of others make visible are theirs.
visible=$(readelf -sWC "$@" |
  awk '$5 != "LOCAL" && $6 == "DEFAULT" && $7 ~ /^[0-9]+$/ { $1 = $2 = $3 = $4 = $5 = $6 = $7 = ""; print }' |
  sed -E 's/^ *((typeinfo( name)?|vtable) for )?//' | grep '^sifr::' | sort -u)
# Of detail: what inline functions of public headers and other rooms call.
own=$(grep -E '^sifr::(\(anonymous namespace\)|detail)::' <<<"$visible" | grep -vE '^sifr::detail::(write_log|throw_other_batch)\(' || true)
if [ -n "$own" ]; then
  printf 'visible, and no part of the interface:\n%s\n' "$own" >&2
  exit 1
fi
for wanted in sifr::Engine::step sifr::Context::threads sifr::parse_config sifr::UsageError; do
  if ! grep -q "^$wanted" <<<"$visible"; then
    echo "hidden, and part of the interface: $wanted" >&2
    exit 1
  fi
done
echo "$(wc -l <<<"$visible") symbols are visible"
