#!/bin/sh
# nginx, serving /var/www/html on port 80; its logs are links of the image to the unit's.
set -eu
[ "${1:-}" = nginx ] || exec "$@"
shift
exec nginx -g 'daemon off;' "$@"
