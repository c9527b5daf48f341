#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Make a static library of one object, in which only gpuconv_* is visible: a program that uses it may have its own
# image_free().
#
#     join_objects.sh OBJCOPY AR OUTPUT COMPILER... -- OBJECT... ARCHIVE...
set -eu
objcopy=$1
ar=$2
output=$3
shift 3
"$@" -o "$output.o"
"$objcopy" --wildcard --keep-global-symbol='gpuconv_*' "$output.o"
rm -f "$output"
"$ar" -rcsD "$output" "$output.o"
rm "$output.o"
