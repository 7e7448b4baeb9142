#!/bin/sh
# Builds the wheel of the Python library into packages/python/dist, reproducibly. It needs Debian's hatchling, which only the
# set-up for tests installs.
set -eu
cd "$(dirname "$0")/../packages/python"

python=/usr/bin/python3
if ! $python -c 'import hatchling' 2>/dev/null; then
  echo 'The wheel is built by hatchling, which this machine lacks: sudo apt-get install python3-hatchling' >&2
  echo 'To use the library on this machine you need no wheel: pip install ./packages/python (docs/python.md).' >&2
  exit 1
fi
exec $python -m hatchling build -t wheel "$@"
