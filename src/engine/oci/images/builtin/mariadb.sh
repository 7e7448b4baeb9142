#!/bin/sh
# MariaDB. Makes a data directory when there is none, from the one that the image was built with:
# MARIADB_ROOT_PASSWORD, and MARIADB_USER with MARIADB_PASSWORD and MARIADB_DATABASE. Within the unit root needs no
# password; without one, root does not get in from outside.
set -eu
[ "${1:-}" = mariadbd ] || exec "$@"
shift
data=/var/lib/mysql/data
# As it is: the shell's echo has ideas of its own about backslashes.
say() { printf '%s\n' "$1"; }
# Whatever is in it, byte by byte; and what a statement that is put together has for it, as a string and as a name.
text() { printf "CONVERT(X'%s' USING utf8mb4)" "$(printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n')"; }
string() { say "QUOTE($(text "$1"))"; }
name() { say "CONCAT('\`', REPLACE($(text "$1"), '\`', '\`\`'), '\`')"; }
# In a grant _ and % would mean others, too, unless there is a backslash before them.
backslash='CHAR(92 USING utf8mb4)'
granted() { say "REPLACE(REPLACE(REPLACE($(name "$1"), $backslash, CONCAT($backslash, $backslash)), '_', CONCAT($backslash, '_')), '%', CONCAT($backslash, '%'))"; }
execute() { say "EXECUTE IMMEDIATE CONCAT($1);"; }

install -d -o mysql -g mysql /run/mysqld /var/lib/mysql
if [ ! -d "$data" ]; then
  # Made under another name and then renamed: half a database is never taken for one.
  rm -rf "$data.new"
  install -d -m 0700 -o mysql -g mysql "$data.new"
  # Out of one file: opening each of hundreds takes seconds in a sandbox.
  setpriv --reuid=mysql --regid=mysql --init-groups \
    tar --extract --touch --file=/usr/share/berth/data.tar --directory="$data.new"
  {
    say 'FLUSH PRIVILEGES;'
    [ -z "${MARIADB_DATABASE:-}" ] || execute "'CREATE DATABASE ', $(name "$MARIADB_DATABASE")"
    if [ -n "${MARIADB_ROOT_PASSWORD:-}" ]; then
      execute "'CREATE USER root@''%'' IDENTIFIED BY ', $(string "$MARIADB_ROOT_PASSWORD")"
      say "GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;"
    fi
    if [ -n "${MARIADB_USER:-}" ]; then
      user="$(string "$MARIADB_USER"), '@''%'''"
      execute "'CREATE USER ', $user, ' IDENTIFIED BY ', $(string "${MARIADB_PASSWORD:-}")"
      [ -z "${MARIADB_DATABASE:-}" ] ||
        execute "'GRANT ALL ON ', $(granted "$MARIADB_DATABASE"), '.* TO ', $user"
    fi
  } | mariadbd --user=mysql --datadir="$data.new" --bootstrap
  sync -f "$data.new"
  mv -T "$data.new" "$data"
fi
exec mariadbd --user=mysql --datadir="$data" --bind-address='*' "$@"
