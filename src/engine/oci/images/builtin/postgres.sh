#!/bin/sh
# PostgreSQL. Makes a cluster in PGDATA when there is none, from the one that the image was built with: POSTGRES_USER
# (postgres) has all rights, with POSTGRES_PASSWORD, and owns POSTGRES_DB (the user's name). Within the unit nobody needs
# the password; without one, nobody gets in from outside.
set -eu
[ "${1:-}" = postgres ] || exec "$@"
shift
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
# As it is: the shell's echo has ideas of its own about backslashes.
say() { printf '%s\n' "$1"; }
# Whatever is in it, byte by byte.
quoted() { say "E'$(printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../\\x&/g')'"; }
name_of() { printf '%s' "$1" | sed 's/"/""/g; s/^/"/; s/$/"/'; }

install -d -o postgres -g postgres /run/postgresql "$(dirname "$PGDATA")"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  # A line is a statement below.
  if [ "$(printf '%s' "$user$database" | wc -l)" != 0 ]; then
    say 'POSTGRES_USER and POSTGRES_DB can have no line breaks in them.' >&2
    exit 1
  fi
  # Made under another name and then renamed: half a cluster is never taken for one.
  new=$PGDATA.new
  rm -rf "$new"
  install -d -m 0700 -o postgres -g postgres "$new"
  # Out of one file: opening each of a thousand takes seconds in a sandbox.
  as_postgres tar --extract --touch --file=/usr/share/berth/cluster.tar --directory="$new"
  say 'host all all all scram-sha-256' >>"$new/pg_hba.conf"
  {
    [ "$user" = postgres ] || say "CREATE ROLE $(name_of "$user") SUPERUSER LOGIN"
    [ -z "${POSTGRES_PASSWORD:-}" ] || say "ALTER ROLE $(name_of "$user") PASSWORD $(quoted "$POSTGRES_PASSWORD")"
    # The files as they are, and not by way of the log: all of it is synced below.
    [ "$database" = postgres ] || say "CREATE DATABASE $(name_of "$database") OWNER $(name_of "$user") STRATEGY file_copy"
  } | as_postgres postgres --single -D "$new" -c fsync=off -c exit_on_error=on postgres >/dev/null
  sync -f "$new"
  mv -T "$new" "$PGDATA"
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -c listen_addresses='*' "$@"
