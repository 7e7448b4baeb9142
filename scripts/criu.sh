# Installs CRIU, which saves the memory of machines of the class runc. setup.sh sources this file. Debian's own CRIU is
# used if it works on this kernel. An older version often does not (CRIU must support the kernel); then the script
# downloads a newer one from a newer Debian into a separate directory, with its own libraries and loader.
# It installs nothing else of the newer Debian and changes no setting of the host's apt. Without any CRIU,
# everything else still works.

criu_home=/usr/local/lib/berth/criu
criu_suite=forky

provide_criu() {
  [ -z "${BERTH_CRIU-}" ] || return 0
  # Asked once for each kernel, and again a day after it came to nothing.
  [ "$(cat $criu_home/works-with 2>/dev/null)" != "$(uname -r)" ] || return 0
  [ -z "$(find $criu_home/failed -mtime -1 2>/dev/null)" ] || return 0
  mkdir -p $criu_home

  criu_works $criu_home/criu && return
  command -v criu >/dev/null || install_own_criu >/dev/null 2>&1 || true
  criu_works criu && return
  say "fetching a newer CRIU from Debian $criu_suite, into $criu_home alone"
  # In a process of its own, so that whatever goes wrong is no failure of the set-up.
  (fetch_criu) 2>&1 | tail -n 3 >&2
  criu_works $criu_home/criu && return
  date >$criu_home/failed
  say 'no CRIU works on this kernel: what units have in memory will not be kept (all else works; asked again in a day)'
}

install_own_criu() {
  apt install --no-install-recommends criu || { apt update -qq && apt install --no-install-recommends criu; }
}

criu_works() {
  [ "$(timeout 20 "$1" check 2>&1 | tail -n 1)" = 'Looks good.' ] || return 1
  rm -f $criu_home/failed
  uname -r >$criu_home/works-with
}

fetch_criu() {
  set -e
  need_space $criu_home 1 'CRIU'
  work=$(mktemp -d /var/tmp/berth-criu-XXXXXX)
  trap 'rm -rf "$work"' EXIT
  chmod 755 "$work"
  mkdir -p "$work/none" "$work/lists/partial" "$work/archives/partial" "$work/tree" "$work/home/lib"
  # Nothing is installed in the eyes of this apt, so it fetches all that CRIU needs.
  : >"$work/status"
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
    "$(debian_mirror)" $criu_suite >"$work/sources.list"
  apart="-o Dir::Etc::SourceList=$work/sources.list -o Dir::Etc::SourceParts=$work/none -o Dir::Etc::Preferences=$work/none/x
    -o Dir::Etc::PreferencesParts=$work/none -o Dir::State=$work -o Dir::State::Lists=$work/lists
    -o Dir::State::Status=$work/status -o Dir::Cache=$work -o Dir::Cache::Archives=$work/archives
    -o Acquire::Languages=none -o Acquire::http::Timeout=30 -o Acquire::Retries=1
    -o Acquire::Check-Valid-Until=false"
  # shellcheck disable=SC2086 # lists of words
  apt_within 300 $apart update
  # shellcheck disable=SC2086
  apt_within 300 $apart install --no-install-recommends --download-only criu
  for package in "$work"/archives/*.deb; do dpkg-deb --extract "$package" "$work/tree"; done

  # Of all that, the program and the libraries it names.
  loader=$(find "$work/tree/" -name 'ld-linux-*.so.*' | head -n 1)
  libraries="$work/tree/usr/lib/$(uname -m)-linux-gnu"
  "$loader" --library-path "$libraries" --list "$work/tree/usr/sbin/criu" |
    awk -v tree="$work/tree/" 'index($3, tree) == 1 { print $3 }' | xargs cp --dereference --target-directory="$work/home/lib"
  cp --dereference "$loader" "$work/home/lib/loader"
  cp "$work/tree/usr/sbin/criu" "$work/home/criu.bin"
  printf '#!/bin/sh\nexec %s/lib/loader --library-path %s/lib %s/criu.bin "$@"\n' $criu_home $criu_home $criu_home \
    >"$work/home/criu"
  chmod 755 "$work/home/criu"
  # The program last: where it is, its libraries are.
  rm -rf $criu_home/criu $criu_home/lib
  mv "$work/home/lib" "$work/home/criu.bin" $criu_home/
  mv "$work/home/criu" $criu_home/
}

apt_within() {
  seconds=$1
  shift
  DEBIAN_FRONTEND=noninteractive timeout "$seconds" apt-get -y -qq -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}
