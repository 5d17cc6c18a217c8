#!/usr/bin/env bash
# Builds and runs sifr's tests. Ends with ctest's summary; the exit code tells.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'END'
usage: bash tests/run.sh [--fast | --label NAME] [--tidy] [--oracles]
  (nothing)     the whole suite: release with packages and mutations, ASan with UBSan, TSan, the fuzzers for a short
                time, clang 14, and a room in debug; <= 45 minutes on 2 cores, <= 20 once its caches are warm
  --fast        the daily loop: the release build and its tests without the label slow
  --label NAME  the release build and the tests of one label: a room (device, comm, …), layers, package, mutations, …
  --tidy        clang-tidy beside the build by clang 14: some 20 minutes more the first time
  --oracles     first install PyTorch and transformers (5 GB, once) into ${XDG_CACHE_HOME:-~/.cache}/sifr;
                without them their tests print [skipped]
END
}

mode=whole
oracles=no
tidy=no
label=""
while [ $# -gt 0 ]; do
  case $1 in
    --fast) mode=fast ;;
    --label) mode=label label=${2:?--label needs a name} && shift ;;
    --tidy) tidy=yes ;;
    --oracles) oracles=yes ;;
    --help | -h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done

bash cmake/install_packages.sh --tests

# Where the suite is itself somebody's rank, its programs would join that job.
unset RANK WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS SIFR_RANK SIFR_WORLD_SIZE

# One compiler cache for every clone, whatever its path.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros
jobs=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)

if [ $oracles = yes ]; then
  bash tests/oracles/install.sh oracles
else
  bash tests/oracles/install.sh readers || echo "no safetensors package from PyPI: numpy alone reads what is saved"
fi
python=$(bash tests/oracles/python.sh)

# phase TEXT COMMAND...: runs it, tells how long it took; its output is shown if it fails.
mkdir -p build
phase() {
  local text=$1 start=$SECONDS
  shift
  if ! "$@" >build/phase.log 2>&1; then
    cat build/phase.log
    echo "FAILED: $text: $*" >&2
    exit 1
  fi
  printf '%-40s %4d s\n' "$text" $((SECONDS - start))
}

# build PRESET [-D …]: all targets, or those that the preset names.
build() {
  phase "configure $1" cmake --preset "$1" -D SIFR_PYTHON="$python" "${@:2}"
  phase "build $1" cmake --build --preset "$1" --parallel "$jobs"
}

# Debian's oneDNN is built without TSan, which therefore cannot see how it guards what its threads share.
export TSAN_OPTIONS=ignore_noninstrumented_modules=1

run_ctest() { ctest --output-on-failure --no-tests=error --parallel "$jobs" "$@"; }

mutations=ON
if [ $mode = fast ]; then mutations=OFF; fi
build release -D SIFR_MUTATIONS=$mutations
case $mode in
  fast) run_ctest --test-dir build/release --label-exclude slow && exit 0 || exit 1 ;;
  label) run_ctest --test-dir build/release --label-regex "^$label\$" && exit 0 || exit 1 ;;
esac
for preset in asan tsan; do
  build $preset
  phase "test $preset" run_ctest --test-dir build/$preset
done
build fuzz
phase "test fuzz" run_ctest --test-dir build/fuzz
# Beside its warnings, the clang build shows that its kernels give the same bits as g++'s.
clang=clang
if [ $tidy = yes ]; then clang=tidy; fi
build $clang
phase "test $clang" run_ctest --test-dir build/$clang/tests/device
# What people configure by hand: a room in debug, and the workflow, whose release build is there already.
phase "configure debug" cmake --preset debug -D SIFR_PYTHON="$python"
phase "build debug" cmake --build --preset debug --parallel "$jobs" --target config_schema_test
phase "test debug" run_ctest --test-dir build/debug/tests/config_schema --label-exclude fuzz
CTEST_PARALLEL_LEVEL=$jobs cmake --workflow --preset check
