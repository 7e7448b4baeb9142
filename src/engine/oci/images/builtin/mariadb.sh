#!/bin/sh
# MariaDB. Makes a data directory when there is none, from the one that the image was built with:
# MARIADB_ROOT_PASSWORD, and MARIADB_USER with MARIADB_PASSWORD and MARIADB_DATABASE. Within the unit root needs no
# password; without one, root does not get in from outside.
set -eu
[ "${1:-}" = mariadbd ] || exec "$@"
shift
data=/var/lib/mysql/data
quoted() { printf '%s' "$1" | sed "s/\\\\/\\\\\\\\/g; s/'/''/g; s/^/'/; s/\$/'/"; }
# As it is: the shell's echo has ideas of its own about backslashes.
say() { printf '%s\n' "$1"; }
name_of() { printf '%s' "$1" | sed 's/`/``/g; s/^/`/; s/$/`/'; }

install -d -o mysql -g mysql /run/mysqld /var/lib/mysql
if [ ! -d "$data" ]; then
  # Made under another name and then renamed: half a database is never taken for one.
  rm -rf "$data.new"
  cp -a --sparse=always /usr/share/berth/data "$data.new"
  {
    say 'FLUSH PRIVILEGES;'
    [ -z "${MARIADB_DATABASE:-}" ] || say "CREATE DATABASE $(name_of "$MARIADB_DATABASE");"
    if [ -n "${MARIADB_ROOT_PASSWORD:-}" ]; then
      say "CREATE USER root@'%' IDENTIFIED BY $(quoted "$MARIADB_ROOT_PASSWORD");"
      say "GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;"
    fi
    if [ -n "${MARIADB_USER:-}" ]; then
      say "CREATE USER $(quoted "$MARIADB_USER")@'%' IDENTIFIED BY $(quoted "${MARIADB_PASSWORD:-}");"
      [ -z "${MARIADB_DATABASE:-}" ] ||
        say "GRANT ALL ON $(name_of "$MARIADB_DATABASE").* TO $(quoted "$MARIADB_USER")@'%';"
    fi
  } | mariadbd --user=mysql --datadir="$data.new" --bootstrap
  sync -f "$data.new"
  mv -T "$data.new" "$data"
fi
exec mariadbd --user=mysql --datadir="$data" --bind-address='*' "$@"
