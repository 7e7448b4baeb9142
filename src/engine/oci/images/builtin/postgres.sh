#!/bin/sh
# PostgreSQL. Makes a cluster in PGDATA when there is none, from the one that the image was built with: POSTGRES_USER
# (postgres) has all rights, with POSTGRES_PASSWORD, and owns POSTGRES_DB (the user's name). Within the unit nobody needs
# the password; without one, nobody gets in from outside.
set -eu
[ "${1:-}" = postgres ] || exec "$@"
shift
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
# One line, whatever is in it: a line is a statement here.
quoted() { printf '%s' "$1" | sed "s/\\\\/\\\\\\\\/g; s/'/\\\\'/g" | awk 'BEGIN { printf "E\047" } { printf "%s%s", (NR > 1 ? "\\n" : ""), $0 } END { print "\047" }'; }
name_of() { printf '%s' "$1" | sed 's/"/""/g; s/^/"/; s/$/"/'; }

install -d -o postgres -g postgres /run/postgresql "$(dirname "$PGDATA")"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  # Made under another name and then renamed: half a cluster is never taken for one.
  new=$PGDATA.new
  rm -rf "$new"
  cp -a /usr/share/berth/cluster "$new"
  echo 'host all all all scram-sha-256' >>"$new/pg_hba.conf"
  {
    [ "$user" = postgres ] || echo "CREATE ROLE $(name_of "$user") SUPERUSER LOGIN"
    [ -z "${POSTGRES_PASSWORD:-}" ] || echo "ALTER ROLE $(name_of "$user") PASSWORD $(quoted "$POSTGRES_PASSWORD")"
    [ "$database" = postgres ] || echo "CREATE DATABASE $(name_of "$database") OWNER $(name_of "$user")"
  } | as_postgres postgres --single -D "$new" -c fsync=off postgres >/dev/null
  sync -f "$new"
  mv -T "$new" "$PGDATA"
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -c listen_addresses='*' "$@"
