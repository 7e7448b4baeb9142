#!/bin/sh
# Docker, for a unit in which containers may run. Its images and containers are in /var/lib/docker.
set -eu
[ "${1:-}" = dockerd ] || exec "$@"
shift
fail() {
  echo "$1" >&2
  exit 1
}
echo 1 2>/dev/null >/proc/sys/net/ipv4/ip_forward ||
  fail 'Containers cannot run in this unit: create it with "nested": true.'
# Docker's own rules need more than the sandbox's kernel has. Containers reach the world by the unit's address; ports that
# they publish are served by docker-proxy.
address=$(ip -4 -o address show dev eth0 | sed 's/.* inet //; s,[/ ].*,,')
for protocol in tcp udp; do
  iptables -t nat -A POSTROUTING -o eth0 -p $protocol -j SNAT --to-source "$address"
done
# Left by a run that ended at once: another process may have that number now.
rm -rf /run/docker.pid /run/docker /run/containerd
exec dockerd --iptables=false --ip6tables=false "$@"
