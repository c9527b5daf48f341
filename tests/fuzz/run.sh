#!/bin/sh
# SPDX-License-Identifier: MIT
# Look for inputs that break something: tests/fuzz/run.sh NAME SECONDS [--merge]
#
# NAME is filter, image, jobs or metadata, as in tests/fuzz/NAME.c, or inflate, as in codecs/fuzz/inflate.c. The search
# starts from the committed inputs. It uses the build folder $BUILD (default build-fuzz), and sets it up with clang and
# its sanitizers if it is missing.
#
# An input that crashes, leaks or takes more than $TIMEOUT (default 10) seconds ends the run with an exit status other
# than 0. It is kept in $BUILD/found-NAME; once the bug is fixed, add it to tests/data/bad.py.
#
# The last lines report the edges (cov) and features (ft) that were reached, and the executions. With --merge the new
# inputs that reach more than the committed ones are added to corpus/NAME.tar.xz.
set -eu
[ $# -ge 2 ] || { echo 'usage: tests/fuzz/run.sh NAME SECONDS [--merge]' >&2; exit 2; }
name=$1 seconds=$2 merge=${3-}
cd "$(dirname "$0")/../.."
build=${BUILD:-build-fuzz}
[ -d "$build" ] || CC=clang meson setup "$build" -Dfuzz=true -Dwerror=true -Dcuda=disabled \
    -Doptimization=1 -Ddebug=true -Db_sanitize=address,undefined -Db_lundef=false
ninja -C "$build" "tests/fuzz/fuzz_$name" "tests/fuzz/corpus-$name.txt" tests/data/bad.txt >"$build/$name.log" ||
    { cat "$build/$name.log"; exit 1; }
fuzzer=$build/tests/fuzz/fuzz_$name corpus=$build/tests/fuzz/corpus/$name
found=$build/found-$name log=$build/$name.log status=0
mkdir -p "$found/new"
set -- "$found/new" "$corpus" "$build/tests/data/bad"
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
    python3 tests/fuzz/pack.py add "$name" "$corpus"
fi
exit $status
