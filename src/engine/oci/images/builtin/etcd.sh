#!/bin/sh
# etcd, a cluster of one, with its data in /var/lib/etcd.
set -eu
[ "${1:-}" = etcd ] || exec "$@"
shift
install -d -m 0700 -o etcd -g etcd /var/lib/etcd
exec setpriv --reuid=etcd --regid=etcd --init-groups etcd --data-dir /var/lib/etcd --listen-peer-urls http://127.0.0.1:2380 \
  --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$(hostname):2379" "$@"
