#!/bin/sh
# Builds the programs in C of this directory, and that of the image for code, with the compilers of Debian 12 (gcc,
# gcc-aarch64-linux-gnu).
set -eu
cd "$(dirname "$0")"
flags='-Os -static -nostdlib -ffreestanding -fno-builtin -fno-stack-protector -fno-asynchronous-unwind-tables -fno-pic
  -no-pie -Wall -Wextra -Werror -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,-s -Wl,-e,_start -I.'
for program in fork hold name relay start wait watch ../images/builtin/code/client; do
  # shellcheck disable=SC2086 # a list of words
  gcc $flags -fcf-protection=none -o "$program-x64" "$program.c"
  # shellcheck disable=SC2086
  aarch64-linux-gnu-gcc $flags -mno-outline-atomics -o "$program-arm64" "$program.c"
done
