#!/bin/sh
# Runs a command in a mount namespace of its own (see sandbox.ts, which calls this; pid and session stay).
# Arguments: (ro|rw FROM TO)... -- COMMAND...
set -eu

# Disks of units, pools and network namespaces belong to the engines of this host. A copy of such a mount in
# here would keep it alive after its engine has unmounted it, also another instance's.
while read -r _ _ _ _ point _ rest; do
  case "$point ${rest#*- }" in
    /run/berth/* | /run/netns/* | */pool' btrfs '*) echo "$point" ;;
  esac
done </proc/self/mountinfo | while read -r point; do
  umount --lazy "$point" 2>/dev/null || true
done

while [ "$1" != -- ]; do
  mount --bind "$2" "$3"
  mount -o "remount,bind,nosuid,nodev,$1" "$3"
  shift 3
done
shift

exec "$@"
