// How a command begins in a sandbox: a shell goes to its directory and says its process id, and then executes the command,
// which keeps that id.

import { type AppError, unavailable, validation } from '../../../contract/errors.ts'
import { limits } from '../../../contract/limits.ts'

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

/** Puts arguments together that come in pieces: how many arguments, then of each how many pieces, and these. */
const JOIN = `
dir=$1 left=$2
shift 2
while [ "$left" -gt 0 ]; do
  pieces=$1 whole=
  shift
  while [ "$pieces" -gt 0 ]; do
    whole=$whole$1
    shift
    pieces=$((pieces - 1))
  done
  set -- "$@" "$whole"
  left=$((left - 1))
done
set -- "$dir" "$@"`

/** An argument that is longer than one of the API may be is passed in pieces. */
export function entering(cwd: string, command: readonly string[]): string[] {
  if (command.every((argument) => argument.length <= limits.execArgvItemLength))
    return ['/bin/sh', '-c', SCRIPT, 'enter', cwd, ...command]
  const pieces = command.flatMap((argument) => {
    const cut = piecesOf(argument)
    return [String(cut.length), ...cut]
  })
  return ['/bin/sh', '-c', JOIN + SCRIPT, 'enter', cwd, String(command.length), ...pieces]
}

/** No piece ends between the two halves of a character. */
function piecesOf(argument: string): string[] {
  const pieces: string[] = []
  for (let at = 0; at < argument.length; ) {
    const end = at + limits.execArgvItemLength
    const isHalved = /[\uD800-\uDBFF]/.test(argument.charAt(end - 1)) && end < argument.length
    pieces.push(argument.slice(at, isHalved ? end - 1 : end))
    at += pieces.at(-1)?.length ?? 0
  }
  return pieces
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
