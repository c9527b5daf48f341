#!/bin/sh
# SPDX-License-Identifier: MIT
# A handful of runs under valgrind's memcheck: valgrind.sh GPUCONV. No reads of what nobody wrote, none outside of
# blocks, no leaks. Skipped (exit status 77) where valgrind is not installed.
command -v valgrind >/dev/null || { echo 'skipped: valgrind is not installed'; exit 77; }
program=$(realpath "$1") tests=$(dirname "$(realpath "$0")")/..
folder=$(mktemp -d) failed=0
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# check STATUS ARGUMENTS...: the run must end with STATUS; valgrind's own findings end with 99.
check() {
    expected=$1
    shift
    valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
        --show-leak-kinds=definite "$program" "$@" >log 2>&1 && status=0 || status=$?
    if [ "$status" -ne "$expected" ]; then
        echo "gpuconv $*: exit status $status, expected $expected"
        head -n 40 log
        failed=1
    fi
}

cpu='--backend cpu --threads 2'
check 0 --help
check 0 --list
check 0 --list-variants
check 0 --show gaussian:2.5
for filter in sharpen box:4 gaussian:2,emboss disk:3.5; do
    check 0 $cpu "$filter" "$tests/golden/source.png" out.png
done
for border in reflect101 wrap zero; do
    check 0 $cpu --border $border shift "$tests/golden/source.png" out.jpg
done
check 0 $cpu --variant reference sharpen out.jpg again.png
"$PYTHON" "$tests/cli/png.py" 33 17 4 >alpha.png || exit 1
check 0 $cpu --alpha premultiply blur alpha.png out.png
check 0 $cpu --in-place blur alpha.png
for full in full.jpg full.png raw.png; do # metadata of all kinds, turned, to both formats
    check 0 $cpu blur "$tests/fuzz/corpus/metadata/$full" out.png
    check 0 $cpu blur "$tests/fuzz/corpus/metadata/$full" out.jpg
done
check 0 --compare out.png out.png
check 1 --compare again.png "$tests/golden/source.png" difference.png
"$PYTHON" "$tests/data/bad.py" bad || exit 1
for bad in crc.png huffman.jpg few-rows.png not-deflate.png; do
    check 1 $cpu blur "bad/$bad" out.png
done
for bad in ragged.txt overflow.txt binary.txt; do
    check 2 $cpu "bad/$bad" alpha.png out.png
done
check 2 --nonsense
exit $failed
