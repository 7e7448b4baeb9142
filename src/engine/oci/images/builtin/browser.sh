#!/bin/sh
# Chromium for a client of the DevTools protocol, at port 9222. `browser` starts it, without a window, as the user `user`; further
# arguments are Chromium's own.
set -eu
[ "${1:-}" = browser ] || exec "$@"
shift
home=/home/user
cd $home
# A machine that was forked or ended by force has the lock of another one.
rm -f $home/.config/chromium/Singleton*
exec setpriv --reuid=user --regid=user --init-groups --no-new-privs \
  env HOME=$home USER=user node /usr/local/lib/berth-browser/cdp.mjs "$@"
