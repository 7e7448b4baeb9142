// How a command begins in a sandbox: a shell goes to its directory and says its process id, and then executes the command,
// which keeps that id.

import { type AppError, unavailable, validation } from '../../../contract/errors.ts'

/** A home that is not there is no reason to refuse a command that names no directory. */
const SCRIPT = `
given=$1 dir=$1
shift
case $dir in
  ''|'~') dir=$HOME ;;
  '~/'*) dir=$HOME/\${dir#??} ;;
  /*) ;;
  *) dir=$HOME/$dir ;;
esac
cd "$dir" 2>/dev/null || { [ -z "$given" ] && cd /; } || { echo '!directory'; exit 0; }
echo $$
exec "$@"`

/** Returns the arguments that begin a command in a directory; it is refused as any other with an argument that is too long. */
export function entering(cwd: string, command: readonly string[]): string[] {
  return ['/bin/sh', '-c', SCRIPT, 'enter', cwd, ...command]
}

/** More is no line of the script above. */
const LINE_BYTES = 64

export type Entered =
  | { kind: 'more' }
  | { kind: 'began'; pid: number; rest: Buffer }
  | { kind: 'refused'; error: AppError }

/** Reads the line that the script prints first. */
export function readEntered(printed: Buffer, cwd: string): Entered {
  const end = printed.indexOf('\n')
  if (end < 0 && printed.length <= LINE_BYTES) return { kind: 'more' }
  const line = printed.subarray(0, end).toString('latin1').trim()
  if (/^[1-9]\d{0,9}$/.test(line))
    return { kind: 'began', pid: Number(line), rest: printed.subarray(end + 1) }
  if (line === '!directory')
    return { kind: 'refused', error: validation([{ path: 'cwd', message: `"${cwd}" does not exist` }]) }
  return { kind: 'refused', error: unavailable('The command could not be started; send the call again.', 1) }
}
