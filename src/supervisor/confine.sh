#!/bin/sh
# Runs a command in a mount namespace of its own (see confine.ts, which calls this; pid and session stay).
# Arguments: PREFIX... -- (ro|rw FROM TO)... -- COMMAND...
set -eu

# Mounts below these prefixes (disks of units, the pool, network namespaces) belong to the engine. A copy of
# one in here would keep it alive after the engine has unmounted it.
while [ "$1" != -- ]; do
  while read -r _ _ _ _ point _; do
    case $point in "$1"/*) echo "$point" ;; esac
  done </proc/self/mountinfo | while read -r point; do
    umount --lazy "$point" 2>/dev/null || true
  done
  shift
done
shift

while [ "$1" != -- ]; do
  mount --bind "$2" "$3"
  mount -o "remount,bind,nosuid,nodev,$1" "$3"
  shift 3
done
shift

exec "$@"
