#!/bin/sh
# PostgreSQL. Makes a cluster in PGDATA when there is none: POSTGRES_PASSWORD, POSTGRES_USER (postgres),
# POSTGRES_DB (the user's name). Within the unit nobody needs the password; without one, nobody gets in from
# outside.
set -eu
[ "${1:-}" = postgres ] || exec "$@"
shift
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }

install -d -o postgres -g postgres /run/postgresql "$(dirname "$PGDATA")"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres}
  # Made under another name and then renamed: half a cluster is never taken for one.
  new=$PGDATA.new
  rm -rf "$new"
  password_file=$(mktemp)
  chown postgres "$password_file"
  printf '%s\n' "${POSTGRES_PASSWORD:-}" >"$password_file"
  as_postgres initdb --pgdata="$new" --username="$user" --encoding=UTF8 --locale=C.UTF-8 \
    --auth-local=trust --auth-host=scram-sha-256 \
    ${POSTGRES_PASSWORD:+--pwfile="$password_file"}
  rm "$password_file"
  echo 'host all all all scram-sha-256' >>"$new/pg_hba.conf"
  if [ "${POSTGRES_DB:-$user}" != postgres ]; then
    name=$(printf '%s' "${POSTGRES_DB:-$user}" | sed 's/"/""/g')
    printf 'CREATE DATABASE "%s"\n' "$name" | as_postgres postgres --single -D "$new" postgres >/dev/null
  fi
  sync
  mv -T "$new" "$PGDATA"
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -c listen_addresses='*' "$@"
