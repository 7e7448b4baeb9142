// Files of a running machine, through the machine itself: the helper runs inside it, so the host never
// opens a path that a unit controls (reliability rule 9). What the helper finds decides; what it answers is
// bounded in size and time.

import { createHash } from 'node:crypto'
import type { MachineRef, WrittenFile } from '../../engine.ts'
import { EngineError, isEngineError } from '../../errors.ts'
import { machinePath } from '../../machine-path.ts'
import { HELPER } from '../runtime/bundle.ts'
import { execInMachine } from './exec.ts'
import { endedWithin } from '../lifecycle/exits.ts'
import { getRunning, type EngineContext } from '../context.ts'

/** A FIFO or a device somebody swapped in after the check must not hold the call. */
const FILE_TIMEOUT_MS = 5_000
/** How long after its last word the end of a machine may become known. */
const MACHINE_ENDS_WITHIN_MS = 3_000

const IS_DIRECTORY = 41
const IS_MISSING = 42
const IS_SPECIAL = 43

// The helper's shell runs its own tools under their bare names, without an execve each and whatever the
// machine has put into its PATH.
const SCRIPT_HEAD = `
set -eu
path=$1`

// Links are followed as any program in the machine would follow them (but not to a pipe or socket, which
// has no name that could be replaced), then the file itself is replaced in
// one step: a reader sees the old content or the new. Mode and owner of a file that was there stay.
const WRITE = `${SCRIPT_HEAD}
[ ! -d "$path" ] || exit ${IS_DIRECTORY}
[ -d "\${path%/*}/" ] || mkdir -p "\${path%/*}/"
if [ -L "$path" ]; then
  target=$(readlink -f "$path")
  [ ! -e "$path" ] || [ -e "$target" ] || exit ${IS_SPECIAL}
  path=$target
fi
[ ! -d "$path" ] || exit ${IS_DIRECTORY}
[ ! -e "$path" ] || [ -f "$path" ] || exit ${IS_SPECIAL}
new=$(mktemp "\${path%/*}/.berth-XXXXXX")
trap 'rm -f "$new"' EXIT
cat > "$new"
if [ -f "$path" ]; then
  chown "$(stat -c %u:%g "$path")" "$new"
  chmod "$(stat -c %a "$path")" "$new"
else
  chmod 644 "$new"
fi
sync -d "$new"
mv -f "$new" "$path"
trap - EXIT
sha256sum < "$path"`

const READ = `${SCRIPT_HEAD}
[ ! -d "$path" ] || exit ${IS_DIRECTORY}
[ -e "$path" ] || exit ${IS_MISSING}
[ -f "$path" ] || exit ${IS_SPECIAL}
head -c "$2" "$path"`

export async function writeFileInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  content: Buffer,
): Promise<WrittenFile> {
  const { stdout } = await runHelper(host, ref, WRITE, [machinePath(path)], content, 4096)
  const read = stdout.toString('latin1').slice(0, 64)
  const sha256 = createHash('sha256').update(content).digest('hex')
  return { bytes: content.length, sha256, verified: read === sha256 }
}

export async function readFileInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  maxBytes: number,
): Promise<Buffer> {
  const asked = [machinePath(path), String(maxBytes + 1)]
  const { stdout } = await runHelper(host, ref, READ, asked, null, maxBytes + 1)
  if (stdout.length > maxBytes)
    throw new EngineError('file_too_large', `The file is larger than ${maxBytes} bytes.`)
  return stdout
}

async function runHelper(
  host: EngineContext,
  ref: MachineRef,
  script: string,
  args: string[],
  stdin: Buffer | null,
  maxBytes: number,
): Promise<{ stdout: Buffer }> {
  const chunks: Buffer[] = []
  let bytes = 0
  let complaint = ''
  const collect = ({ stream, data }: { stream: 'stdout' | 'stderr'; data: Buffer }) => {
    if (stream === 'stderr') complaint = (complaint + data.toString('utf8')).slice(0, 1000)
    else if (bytes < maxBytes) chunks.push(data.subarray(0, maxBytes - bytes))
    if (stream === 'stdout') bytes += data.length
  }
  const machine = getRunning(host, ref)
  const request = { argv: [HELPER, 'sh', '-c', script, 'file', ...args], stdin, timeoutMs: FILE_TIMEOUT_MS }
  const { exitCode, timedOut } = await execInMachine(host, ref, request, collect, undefined, {
    asRoot: true,
  }).catch((error: unknown) => {
    throw isEngineError(error, 'run_ended') ? endedMeanwhile() : error
  })
  if (timedOut)
    throw new EngineError('not_a_file', 'The path did not answer in time: it is not a regular file.')
  if (exitCode === 0) return { stdout: Buffer.concat(chunks) }
  if (exitCode === IS_DIRECTORY) throw new EngineError('not_a_file', 'The path is a directory.')
  if (exitCode === IS_MISSING) throw new EngineError('file_not_found', 'There is no file at that path.')
  if (exitCode === IS_SPECIAL) throw new EngineError('not_a_file', 'The path is not a regular file.')
  if (isFull.test(complaint)) throw new EngineError('disk_full', 'There is no room left for the file.')
  const known = refusals.find((words) => complaint.includes(words))
  // A helper that fails without a word may have gone down with its machine, of which nobody has told yet.
  if (known === undefined && (await endedWithin(host, machine, MACHINE_ENDS_WITHIN_MS)))
    throw endedMeanwhile()
  const why = known ?? 'the file could not be read or written there'
  throw new EngineError('file_refused', `The machine refused it: ${why}.`)
}

function endedMeanwhile(): EngineError {
  return new EngineError('not_running', 'The machine ended meanwhile.')
}

const isFull = /Disk quota exceeded|No space left on device/

/** The helper's last words, without the names of its temporary files. */
const refusals = [
  'Read-only file system',
  'Permission denied',
  'File name too long',
  'Not a directory',
  'Too many levels of symbolic links',
  'Operation not permitted',
]
