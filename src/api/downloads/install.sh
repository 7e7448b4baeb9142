#!/bin/sh
# Installs the command `berth`, as the Berth at @URL@ has it. To install:
#
#   curl -fsSL @URL@/install | sh
#
# It needs no root and writes below your home directory alone: the command into ~/.local/bin (or $BERTH_INSTALL_DIR),
# and, where there is no program for this system, its JavaScript into ~/.local/share/berth, which your Node then runs.
# BERTH_INSTALL=javascript chooses that by hand. To remove it, delete both.
set -eu

url='@URL@'
version='@VERSION@'
# The programs that there are: a system, and the SHA-256 of its file.
programs='@PROGRAMS@'
# The SHA-256 of the package in JavaScript.
package='@PACKAGE@'

# Everything is called in the last line, so that a part of this script does nothing.
main() {
  [ -n "${HOME-}" ] || fail 'HOME is not set: it says where to install.'
  directory=${BERTH_INSTALL_DIR:-$HOME/.local/bin}
  mkdir -p "$directory" || fail "$directory cannot be made."
  # Beside the command, so that it is put in place in one step.
  work=$(mktemp -d "$directory/.berth.XXXXXX") || fail "Nothing can be written into $directory."
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  if [ "${BERTH_INSTALL-}" = javascript ] || ! install_program; then install_javascript; fi

  say "berth $version is installed: $directory/berth"
  case ":$PATH:" in
    *":$directory:"*) ;;
    *)
      say "This directory is not in PATH. Add it, also to your shell's profile:"
      say "  export PATH=\"$directory:\$PATH\""
      ;;
  esac
  say 'Next, sign in:'
  say "  berth login $url"
}

# Returns 1 where there is no program for this system, or it does not run here, as on a system without glibc.
install_program() {
  system=$(system_name) || return 1
  digest=$(echo "$programs" | sed -n "s/^$system //p")
  [ -n "$digest" ] || return 1
  fetch "berth-$system.gz" "$digest"
  gzip -d <"$work/berth-$system.gz" >"$work/berth" || fail 'The program cannot be unpacked: is there room on the disk?'
  chmod 755 "$work/berth"
  "$work/berth" --version >/dev/null 2>&1 || return 1
  mv -f "$work/berth" "$directory/berth"
}

install_javascript() {
  node=$(command -v node) || fail "There is no program for this system ($(uname -sm)), and no Node to run the JavaScript: install Node 22 or newer, then run this again."
  "$node" -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 16) ? 0 : 1)' ||
    fail "berth needs Node 20.16 or newer, and $node is $("$node" --version): install a newer one, then run this again."
  fetch berth-cli.tgz "$package"
  share=$HOME/.local/share/berth
  mkdir -p "$share" && tar -xzf "$work/berth-cli.tgz" -C "$work" || fail "$share cannot be written."
  chmod 755 "$work/package/dist/berth.js"
  rm -rf "$share/cli" && mv "$work/package" "$share/cli" && ln -sf "$share/cli/dist/berth.js" "$directory/berth" ||
    fail "$share cannot be written."
}

system_name() {
  case "$(uname -s) $(uname -m)" in
    'Linux x86_64' | 'Linux amd64') echo linux-x64 ;;
    'Linux aarch64' | 'Linux arm64') echo linux-arm64 ;;
    *) return 1 ;;
  esac
}

# fetch NAME SHA256: a file of this Berth, into the working directory, checked.
fetch() {
  say "fetching $url/packages/$1"
  if command -v curl >/dev/null; then curl -fsSL -o "$work/$1" "$url/packages/$1" || fail 'It could not be fetched (see above).'
  elif command -v wget >/dev/null; then wget -q -O "$work/$1" "$url/packages/$1" || fail 'It could not be fetched.'
  else fail 'Neither curl nor wget is here to fetch it with.'; fi
  if command -v sha256sum >/dev/null; then found=$(sha256sum <"$work/$1")
  elif command -v shasum >/dev/null; then found=$(shasum -a 256 <"$work/$1")
  else fail 'Neither sha256sum nor shasum is here to check it with.'; fi
  [ "${found%% *}" = "$2" ] || fail "$url/packages/$1 is not the file that this script was made for: run it again."
}

say() { echo "$*" >&2; }
fail() { say "berth is not installed: $*"; exit 1; }

main "$@"
