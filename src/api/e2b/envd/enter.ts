// How a command begins in a sandbox: a shell says its process id, becomes the user, and then the command itself, which
// keeps that id.

import { type AppError, notFound, unauthorized, validation } from '../../../contract/errors.ts'

/** The user where the client names none, if the image has it. */
const DEFAULT_USER = 'user'

/** No fork is needed for any of it. Root stays root where the image has no other user. */
const SCRIPT = `
asked=$1 given=$2 dir=$2
shift 2
wanted=\${asked:-${DEFAULT_USER}}
uid= home=/
while IFS=: read -r name _ uid gid _ home _; do
  [ "$name" = "$wanted" ] && break
  uid=
done </etc/passwd
if [ -z "$uid" ]; then
  [ -z "$asked" ] || { echo '!user'; exit 0; }
  wanted=root uid=0 home=/root
fi
export HOME="$home" USER="$wanted" LOGNAME="$wanted"
case $dir in
  ''|'~') dir=$home ;;
  '~/'*) dir=$home/\${dir#??} ;;
  /*) ;;
  *) dir=$home/$dir ;;
esac
cd "$dir" 2>/dev/null || { [ -z "$given" ] && cd /; } || { echo '!directory'; exit 0; }
echo $$
[ "$uid" = 0 ] && exec "$@"
exec setpriv --reuid "$uid" --regid "$gid" --init-groups -- "$@"`

export function entering(
  { user, cwd }: { user: string | null; cwd: string },
  command: readonly string[],
): string[] {
  return ['/bin/sh', '-c', SCRIPT, 'enter', user ?? '', cwd, ...command]
}

/** More is no line of the script above. */
const LINE_BYTES = 64

export type Entered =
  | { kind: 'more' }
  | { kind: 'began'; pid: number; rest: Buffer }
  | { kind: 'refused'; error: AppError }

/** Reads the line that the script prints first. */
export function readEntered(printed: Buffer, { user, cwd }: { user: string | null; cwd: string }): Entered {
  const end = printed.indexOf('\n')
  if (end < 0 && printed.length <= LINE_BYTES) return { kind: 'more' }
  const line = printed.subarray(0, end).toString('latin1').trim()
  if (/^[1-9]\d{0,9}$/.test(line))
    return { kind: 'began', pid: Number(line), rest: printed.subarray(end + 1) }
  if (line === '!user')
    return { kind: 'refused', error: unauthorized(`There is no user "${user}" in the sandbox.`) }
  if (line === '!directory')
    return { kind: 'refused', error: validation([{ path: 'cwd', message: `"${cwd}" does not exist` }]) }
  return { kind: 'refused', error: notFound('shell', '/bin/sh') }
}
