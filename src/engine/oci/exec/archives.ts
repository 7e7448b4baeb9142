// Reads and writes a directory of a running machine as a tar stream. The helper inside the machine does it
// (file-helper.ts), so the content of the directory and of the archive can affect only that machine. Bytes pass
// through unchanged, no faster than the receiver takes them.

import { accountOf } from './as-user.ts'
import { cleanLine } from '../../../contract/fields.ts'
import { limits } from '../../../contract/limits.ts'
import type { MachineRef } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { machineDirectory } from '../../machine-path.ts'
import type { EngineContext } from '../machine/context.ts'
import { IS_MISSING, IS_NO_DIRECTORY, IS_SPECIAL, runHelper, SCRIPT_HEAD, scriptPath } from './file-helper.ts'
import { watched } from './pieces.ts'

const IS_NO_ARCHIVE = 46
const LEFT_OUT_CHARACTERS = 500

// What the kernel shows in the root is no file of the machine's. A single file is an archive of that alone.
const READ = `${SCRIPT_HEAD}
[ -e "$path" ] || [ -L "$path" ] || exit ${IS_MISSING}
if [ ! -d "$path" ]; then
  [ -f "$path" ] || [ -L "$path" ] || exit ${IS_SPECIAL}
  cd "\${path%/*}/"
  exec tar -c -f - "./\${path##*/}"
fi
cd "$path"
case $(pwd -P) in
  /) ;;
  /proc|/proc/*|/sys|/sys/*|/dev|/dev/*) exit ${IS_SPECIAL} ;;
  *) exec tar -c -f - . ;;
esac
set --
for each in .[!.]* ..?* *; do
  [ -e "$each" ] || [ -L "$each" ] || continue
  case $each in proc|sys|dev) ;; *) set -- "$@" "./$each" ;; esac
done
exec tar -c -f - "$@"`

// Files belong to root, as those that are written alone. What a link of the archive's leads to is no place for another
// entry, and no name leads out of the directory: the helper sees to both. Of some entries it only complains, such as of a
// device, and goes on: what is not unpacked whole is no success.
const WRITE = `${SCRIPT_HEAD}
keep=$2
[ -d "$path" ] || ! { [ -e "$path" ] || [ -L "$path" ]; } || exit ${IS_NO_DIRECTORY}
mkdir -p "$path"
cd "$path"
# What is new gets the mode that the archive says, what exists keeps its own.
[ -z "$keep" ] || umask 0
said=$(tar -x -o $keep -f - 2>&1) && case $said in *"can't "*) ;; *) exit 0 ;; esac
case $said in
  *'does not look like a tar'*|*'short read'*|*'invalid tar'*|*'corrupted'*|*'unknown typeflag'*|*'bad'*'checksum'*)
    exit ${IS_NO_ARCHIVE} ;;
esac
printf '%s\\n' "$said" | tail -n 4 >&2
exit 1`

/** Throws `file_too_large` once more bytes came than an archive may have. */
export async function readArchiveInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  onData: (data: Buffer) => void | Promise<void>,
  signal: AbortSignal,
  user?: string,
): Promise<void> {
  let bytes = 0
  const helped = {
    script: READ,
    account: await accountOf(host, ref, user),
    args: [scriptPath(machineDirectory(path))],
    timeoutMs: limits.archiveMs,
    late,
    signal,
  }
  await runHelper(host, ref, helped, async ({ data }) => {
    bytes += data.length
    if (bytes > limits.archiveBytes) throw tooLarge()
    await onData(data)
  })
}

export async function writeArchiveInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  pieces: AsyncIterable<Buffer>,
  signal: AbortSignal,
  keep = false,
): Promise<void> {
  const failed = new AbortController()
  let bytes = 0
  const counted = watched(pieces, failed, (piece) => {
    bytes += piece.length
    if (bytes > limits.archiveBytes) throw tooLarge()
  })
  const helped = {
    script: WRITE,
    args: [scriptPath(machineDirectory(path)), keep ? '--overwrite --no-same-permissions' : ''],
    stdin: counted,
    timeoutMs: limits.archiveMs,
    late,
    signal: AbortSignal.any([signal, failed.signal]),
    outcomes: { [IS_NO_ARCHIVE]: noArchive },
    explain: leftOut,
  }
  await runHelper(host, ref, helped, () => {}).catch((error: unknown) => {
    throw helped.signal.aborted ? helped.signal.reason : error
  })
}

const DEVICE = /^tar: can't create node (.*): Operation not permitted$/
const ENTRY = /^tar: can't [a-z ]+? '?([^ ].*?)'?: ([A-Z][\w ]+)$/

/** Which entries could not be unpacked, and why. Their names are the archive's: any text. */
function leftOut(complaint: string): string | null {
  const lines = complaint.split('\n').flatMap((line) => {
    const [, device] = DEVICE.exec(line) ?? []
    if (device !== undefined) return `${device}: a device, which no unit can make`
    const [, entry, why] = ENTRY.exec(line) ?? []
    return entry === undefined ? [] : `${entry}: ${why}`
  })
  return lines.length === 0 ? null : cleanLine(lines.join('; '), LEFT_OUT_CHARACTERS)
}

function noArchive(): EngineError {
  return new EngineError('not_an_archive', 'This is no whole archive in the format of tar.')
}

function tooLarge(): EngineError {
  return new EngineError('file_too_large', `The archive has more than ${limits.archiveBytes} bytes.`)
}

function late(): EngineError {
  return new EngineError('timeout', 'The archive took too long.')
}
