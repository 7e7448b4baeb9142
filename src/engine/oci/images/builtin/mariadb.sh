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
# Whatever is in it, byte by byte; and what a statement that is put together has for it, as a string and as a name. In a
# sandbox the start of a program takes long: none for what needs no care.
text() {
  case $1 in
  *[!A-Za-z0-9_-]*) printf "CONVERT(X'%s' USING utf8mb4)" "$(printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n')" ;;
  *) printf "CONVERT('%s' USING utf8mb4)" "$1" ;;
  esac
}
string() { say "QUOTE($(text "$1"))"; }
name() { say "CONCAT('\`', REPLACE($(text "$1"), '\`', '\`\`'), '\`')"; }
# In a grant _ and % would mean others, too, unless there is a backslash before them.
backslash='CHAR(92 USING utf8mb4)'
granted() { say "REPLACE(REPLACE(REPLACE($(name "$1"), $backslash, CONCAT($backslash, $backslash)), '_', CONCAT($backslash, '_')), '%', CONCAT($backslash, '%'))"; }
execute() { say "EXECUTE IMMEDIATE CONCAT($1);"; }

# Out of one file: opening each of hundreds takes seconds in a sandbox.
unpack() {
  install -d -o mysql -g mysql "${new%/*}"
  install -d -m 0700 -o mysql -g mysql "$new"
  setpriv --reuid=mysql --regid=mysql --init-groups \
    tar --extract --touch --file=/usr/share/berth/data.tar --directory="$new"
}

customise() {
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
  } | mariadbd --user=mysql --datadir="$new" --bootstrap
}

[ -d /run/mysqld ] || install -d -o mysql -g mysql /run/mysqld
if [ ! -d "$data" ]; then
  # Made under another name and then renamed: half a database is never taken for one. What a new volume has is used once.
  new=$data.new
  [ ! -e "$new" ] || rm -rf "$new"
  if ! { [ -d "$data.prepared" ] && mv -T "$data.prepared" "$new" && customise; }; then
    [ ! -e "$new" ] || rm -rf "$new"
    unpack
    customise
  fi
  sync -f "$new"
  mv -T "$new" "$data"
fi
exec mariadbd --user=mysql --datadir="$data" --bind-address='*' "$@"
