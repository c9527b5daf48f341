#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Build all fuzzers as OSS-Fuzz does: it calls this in a clone, as build.sh. oss-fuzz/ has what else it needs.
#
#     tests/fuzz/ossfuzz.sh [OPTIONS OF meson setup]
#
# $CC, $CXX, $CFLAGS and $CXXFLAGS choose compilers and sanitizers, and $LIB_FUZZING_ENGINE is the engine. $WORK is for
# the build folder, $WORK/fuzz. $OUT gets each fuzzer with its inputs, dictionary and options, and in lib/ the libraries
# that it loads: it runs where they are not installed.
set -eu
names=$(for folder in */fuzz/corpus/*/; do basename "$folder"; done)
# A plain build has no flags but $CFLAGS: Meson does not see a sanitizer there, and would add what hinders it. Libraries
# look for their own libraries on a program's RPATH, and not on its RUNPATH.
# shellcheck disable=SC2016 # $ORIGIN is for the loader
LDFLAGS="${LDFLAGS-} -Wl,-rpath,"'$ORIGIN/lib -Wl,--disable-new-dtags' meson setup "$WORK/fuzz" --buildtype plain \
    -Dcuda=disabled -Dfuzz=true "-Dfuzz_engine=$LIB_FUZZING_ENGINE" -Db_lundef=false "$@"
# shellcheck disable=SC2046 # words
ninja -C "$WORK/fuzz" $(for name in $names; do echo "tests/fuzz/fuzz_$name" "tests/fuzz/corpus-$name.txt"; done) tests/data/bad.txt

mkdir -p "$OUT/lib"
for name in $names; do
    built=$WORK/fuzz/tests/fuzz fuzzer=$OUT/fuzz_$name
    cp "$built/fuzz_$name" "$fuzzer"
    ldd "$built/fuzz_$name" | sed -n 's|.* => \(/.*\) (.*|\1|p' | grep -Ev '/(libc|libm|libdl|librt|libpthread)\.so' |
        xargs -I{} cp -L {} "$OUT/lib"
    set -- "$built/corpus/$name" "$WORK/fuzz/tests/data/bad"
    [ "$name" != image ] || set -- "$@" tests/data/pngsuite
    [ "$name" != filter ] || set -- "$@" filters
    python3 -m zipfile -c "${fuzzer}_seed_corpus.zip" "$@"
    [ ! -f "tests/fuzz/$name.dict" ] || cp "tests/fuzz/$name.dict" "$fuzzer.dict"
    printf '[libfuzzer]\nmax_len = 20000\nrss_limit_mb = 3000\n[asan]\nallocator_may_return_null = 1\n' >"$fuzzer.options"
done
