#!/bin/sh
# RabbitMQ. RABBITMQ_DEFAULT_USER and RABBITMQ_DEFAULT_PASS make the first user; without them only clients
# within the unit get in, as guest.
set -eu
[ "${1:-}" = rabbitmq-server ] || exec "$@"
install -d -o rabbitmq -g rabbitmq /var/lib/rabbitmq /var/log/rabbitmq /run/rabbitmq
# Whatever is in it, byte by byte: out of the environment it would take not every text.
bytes() { printf '<<%s>>' "$(printf '%s' "$1" | od -An -v -tu1 -w1 | tr -d ' ' | paste -s -d , -)"; }
if [ -n "${RABBITMQ_DEFAULT_USER:-}" ]; then
  user=$(bytes "$RABBITMQ_DEFAULT_USER") password=$(bytes "${RABBITMQ_DEFAULT_PASS:-}")
  export RABBITMQ_ADVANCED_CONFIG_FILE=/run/rabbitmq/first-user.config
  install -m 0600 -o rabbitmq -g rabbitmq /dev/null "$RABBITMQ_ADVANCED_CONFIG_FILE"
  echo "[{rabbit, [{default_user, $user}, {default_pass, $password}]}]." >"$RABBITMQ_ADVANCED_CONFIG_FILE"
  unset RABBITMQ_DEFAULT_USER RABBITMQ_DEFAULT_PASS
fi
export HOME=/var/lib/rabbitmq
# Without a name of its file, the C library looks at it for each line of the log.
export TZ="${TZ:-:/etc/localtime}"
# Its own script around this one does nothing but to drop root, with a tool that needs a terminal.
exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups /usr/lib/rabbitmq/bin/rabbitmq-server
