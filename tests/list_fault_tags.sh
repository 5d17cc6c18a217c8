#!/usr/bin/env bash
# Prints each fault id (letters and digits) that tests carry as a tag, with the files that have it.
set -euo pipefail
cd "$(dirname "$0")"
grep -rnoE '\[[A-Z]{2,3}[0-9]{2,3}\]' --include='*_test.cpp' --include='*.py' --include='*.sh' . |
  sed -E 's|^\./([^:]*):[0-9]+:\[(.*)\]$|\2 \1|' | sort -u |
  awk '{ files[$1] = files[$1] " " $2 } END { for (id in files) print id files[id] }' | sort
