#!/bin/sh
# nginx, serving /var/www/html on port 80; its logs are the unit's.
set -eu
[ "${1:-}" = nginx ] || exec "$@"
shift
ln -sf /dev/stdout /var/log/nginx/access.log
ln -sf /dev/stderr /var/log/nginx/error.log
exec nginx -g 'daemon off;' "$@"
