// How a step of a build puts the files of its archive where they belong: as root, in the unit of the build.

/** A pattern, whose matches keep their places below what comes before it. */
const WILD = /[*?[{]/

/**
 * Returns the arguments of a command that unpacks an archive and removes it. A file becomes the destination, or goes into it
 * where it is a directory or ends with a slash; of a directory or a pattern, what is in it goes into the destination.
 *
 * @param copied `source` as in the archive; a relative `destination` is one from the working directory; `owner` is a user,
 * perhaps with a group; `mode` in octal, empty to keep those of the archive.
 */
export function copying(copied: {
  archive: string
  source: string
  destination: string
  owner: string
  mode: string
}): string[] {
  const { archive, source, destination, owner, mode } = copied
  const wild = source.search(WILD)
  const from = wild < 0 ? source : source.slice(0, source.lastIndexOf('/', wild) + 1)
  return ['/bin/sh', '-c', SCRIPT, 'copy', archive, from === '' ? '.' : from, destination, owner, mode]
}

const SCRIPT = `
set -e
archive=$1 from=$2 to=$3 owner=$4 mode=$5
case $to in /*) ;; *) to=$PWD/$to ;; esac
case $owner in *:*) ;; *) owner=$owner:$(id -gn "$owner") ;; esac
staged=$(mktemp -d)
trap 'rm -rf "$staged" "$archive"' EXIT
tar -xf "$archive" -C "$staged"
cd "$staged"
find . -mindepth 1 -exec chown -h "$owner" {} +
[ -z "$mode" ] || find . -mindepth 1 ! -type l -exec chmod "$mode" {} +
into() {
  [ -d "$1" ] || { mkdir -p "$1"; chown "$owner" "$1"; }
}
if [ -d "$from" ] && [ ! -L "$from" ]; then
  into "$to"
  cd "$from"
  find . -mindepth 1 -maxdepth 1 -exec cp -a {} "$to" \\;
else
  case $to in */) into "$to" ;; esac
  [ -d "$to" ] || into "$(dirname "$to")"
  cp -a "$from" "$to"
fi`
