#!/bin/sh
# PostgreSQL. Makes a cluster in PGDATA when there is none, from the one that the image was built with: POSTGRES_USER
# (postgres) has all rights, with POSTGRES_PASSWORD, and owns POSTGRES_DB (the user's name). Within the unit nobody needs
# the password; without one, nobody gets in from outside.
set -eu
[ "${1:-}" = postgres ] || exec "$@"
shift
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
line_break='
'
# As it is: the shell's echo has ideas of its own about backslashes.
say() { printf '%s\n' "$1"; }
# Whatever is in it, byte by byte. In a sandbox the start of a program takes long: none for what needs no care.
quoted() {
  case $1 in
  *[!A-Za-z0-9_-]*) say "E'$(printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../\\x&/g')'" ;;
  *) say "'$1'" ;;
  esac
}
name_of() {
  case $1 in
  *'"'*) printf '%s' "$1" | sed 's/"/""/g; s/^/"/; s/$/"/' ;;
  *) say "\"$1\"" ;;
  esac
}

install -d -o postgres -g postgres /run/postgresql "${PGDATA%/*}"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  # A line is a statement below.
  case $user$database in
  *"$line_break"*)
    say 'POSTGRES_USER and POSTGRES_DB can have no line breaks in them.' >&2
    exit 1
    ;;
  esac
  # Made under another name and then renamed: half a cluster is never taken for one.
  new=$PGDATA.new
  [ ! -e "$new" ] || rm -rf "$new"
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
