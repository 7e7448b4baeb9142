#!/bin/sh
# RabbitMQ. RABBITMQ_DEFAULT_USER and RABBITMQ_DEFAULT_PASS make the first user; without them only clients
# within the unit get in, as guest.
set -eu
[ "${1:-}" = rabbitmq-server ] || exec "$@"
install -d -o rabbitmq -g rabbitmq /var/lib/rabbitmq /var/log/rabbitmq
if [ -n "${RABBITMQ_DEFAULT_USER:-}" ]; then
  umask 077
  {
    printf "default_user = '%s'\n" "$RABBITMQ_DEFAULT_USER"
    printf "default_pass = '%s'\n" "${RABBITMQ_DEFAULT_PASS:-}"
  } >/etc/rabbitmq/rabbitmq.conf
  chown rabbitmq:rabbitmq /etc/rabbitmq/rabbitmq.conf
  # Its start script takes these for its own.
  unset RABBITMQ_DEFAULT_USER RABBITMQ_DEFAULT_PASS
fi
export HOME=/var/lib/rabbitmq
exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups /usr/lib/rabbitmq/bin/rabbitmq-server
