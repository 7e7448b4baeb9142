#!/bin/sh
# RabbitMQ. RABBITMQ_DEFAULT_USER and RABBITMQ_DEFAULT_PASS make the first user; without them only clients
# within the unit get in, as guest.
set -eu
[ "${1:-}" = rabbitmq-server ] || exec "$@"
install -d -o rabbitmq -g rabbitmq /var/lib/rabbitmq /var/log/rabbitmq
export HOME=/var/lib/rabbitmq
# Its own script around this one does nothing but to drop root, with a tool that needs a terminal.
exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups /usr/lib/rabbitmq/bin/rabbitmq-server
