#!/bin/sh
# Redis, with its data in /data on every write. REDIS_PASSWORD asks every client for it; without one, every client that
# can reach the unit may use it.
set -eu
[ "${1:-}" = redis-server ] || exec "$@"
shift
# In a sandbox the start of a program takes as long as all the rest, so none is started that is not needed.
[ -d /data ] || mkdir /data
chown redis:redis /data
# Not as an argument: those are for everybody to read, and one that begins with -- is an option.
password=${REDIS_PASSWORD:-}
case $password in
*[!A-Za-z0-9_-]*) password=$(printf '%s' "$password" | od -An -v -tx1 | tr -d ' \n' | sed 's/../\\x&/g') ;;
esac
exec setpriv --reuid=redis --regid=redis --init-groups redis-server - --dir /data --appendonly yes \
  --bind '* -::*' --protected-mode no "$@" <<EOT
requirepass "$password"
EOT
