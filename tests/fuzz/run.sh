#!/bin/sh
# SPDX-License-Identifier: MIT
# Look for inputs that break something: tests/fuzz/run.sh NAME SECONDS [--merge]
#
# NAME is filter, image, ... as in tests/fuzz/NAME.c. Begins with the committed inputs, in the folder $BUILD (default
# build-fuzz), which is set up for clang and its sanitizers where it is not there. What crashes, leaks or takes more
# than $TIMEOUT (default 10) seconds ends the run with an exit status other than 0 and stays in $BUILD/found-NAME;
# mended, it goes into tests/data/bad. The last lines are the edges (cov) and features (ft) that were reached, and the
# executions. With --merge those of the new inputs that reach more than the committed ones are added to these.
set -eu
[ $# -ge 2 ] || { echo 'usage: tests/fuzz/run.sh NAME SECONDS [--merge]' >&2; exit 2; }
name=$1 seconds=$2 merge=${3-}
cd "$(dirname "$0")/../.."
build=${BUILD:-build-fuzz} corpus=tests/fuzz/corpus/$name
[ -d "$build" ] || CC=clang meson setup "$build" -Dfuzz=true -Dwerror=true -Dcuda=disabled -Dopenmp=disabled \
    -Doptimization=1 -Ddebug=true -Db_sanitize=address,undefined -Db_lundef=false
ninja -C "$build" "tests/fuzz/fuzz_$name" >"$build/$name.log" || { cat "$build/$name.log"; exit 1; }
fuzzer=$build/tests/fuzz/fuzz_$name found=$build/found-$name log=$build/$name.log status=0
mkdir -p "$found/new"
set -- "$found/new" "$corpus" tests/data/bad
[ "$name" != image ] || set -- "$@" tests/data/pngsuite
[ ! -f "tests/fuzz/$name.dict" ] || set -- "-dict=tests/fuzz/$name.dict" "$@"
export ASAN_OPTIONS=allocator_may_return_null=1
"$fuzzer" -max_total_time="$seconds" -max_len=20000 -rss_limit_mb=3000 -timeout="${TIMEOUT:-10}" -print_final_stats=1 \
    -artifact_prefix="$found/" "$@" >"$log" 2>&1 || status=$?
[ $status -eq 0 ] || tail -n 60 "$log"
grep '^#.* cov: ' "$log" | tail -n 1
grep '^stat::' "$log" || true
if [ "$merge" = --merge ] && [ $status -eq 0 ]; then
    "$fuzzer" -merge=1 -max_len=20000 "$corpus" "$found/new" 2>&1 | grep 'MERGE-OUTER: .* new files'
    du -sh --apparent-size "$corpus"
fi
exit $status
