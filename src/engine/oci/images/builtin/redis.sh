#!/bin/sh
# Redis, with its data in /data on every write. REDIS_PASSWORD asks every client for it; without one, whoever
# can reach the unit may use it.
set -eu
[ "${1:-}" = redis-server ] || exec "$@"
shift
install -d -o redis -g redis /data
# Byte by byte, and not as an argument: those are for everybody to read, and one that begins with -- is an option.
hex=$(printf '%s' "${REDIS_PASSWORD:-}" | od -An -v -tx1 | tr -d ' \n' | sed 's/../\\x&/g')
exec setpriv --reuid=redis --regid=redis --init-groups redis-server - --dir /data --appendonly yes \
  --bind '* -::*' --protected-mode no "$@" <<EOT
requirepass "$hex"
EOT
