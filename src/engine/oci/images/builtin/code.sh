#!/bin/sh
# The entry of the image: keeps the interpreter beside the unit's own command. The rest is that of berth.local/base.
set -eu

# Of nobody: the first process reaps it, which the unit's own command need not do.
(/usr/local/lib/berth-code/keep </dev/null >/dev/null &)
exec /usr/local/lib/berth-code/base "$@"
