#!/bin/sh
# The entry of the image: keeps the interpreter beside the unit's own command. The rest is that of berth.local/base.
set -eu

rm -f /run/berth-code/socket
(
  while :; do
    python3 /usr/local/lib/berth-code/server.py || true
    sleep 1
  done
) </dev/null >/dev/null &
exec /usr/local/lib/berth-code/base "$@"
