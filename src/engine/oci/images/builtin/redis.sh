#!/bin/sh
# Redis, with its data in /data on every write. REDIS_PASSWORD asks every client for it; without one, whoever
# can reach the unit may use it.
set -eu
[ "${1:-}" = redis-server ] || exec "$@"
shift
install -d -o redis -g redis /data
exec setpriv --reuid=redis --regid=redis --init-groups redis-server --dir /data --appendonly yes \
  --bind '* -::*' --protected-mode no ${REDIS_PASSWORD:+--requirepass "$REDIS_PASSWORD"} "$@"
