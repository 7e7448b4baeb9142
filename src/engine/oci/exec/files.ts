// Single files of a running machine, written and read by the helper in it (file-helper.ts). From the host, without a
// machine, kernel/unit-tree.ts does that.

import { accountOf } from './as-user.ts'
import { createHash, type Hash } from 'node:crypto'
import { limits } from '../../../contract/limits.ts'
import type { FileOwner, MachineRef, ReadFile, WrittenFile } from '../../engine.ts'
import { textOfBytes } from '../../../lib/byte-text.ts'
import { EngineError } from '../../errors.ts'
import { machinePath } from '../../machine-path.ts'
import type { EngineContext } from '../machine/context.ts'
import {
  type Helped,
  IS_DIRECTORY,
  IS_MISSING,
  IS_SPECIAL,
  readHelper,
  runHelper,
  SCRIPT_HEAD,
  scriptPath,
} from './file-helper.ts'
import { MAKE_PARENTS, ownerArguments } from './file-owner.ts'
import { watched } from './pieces.ts'

// A link is followed as by any program in the machine: where it leads to nothing yet, the kernel itself makes the file that
// an `open` would, or says why not. Then the file is replaced in one step: a reader sees the old content or the new. The
// owner of an existing file stays if the caller names none, and its mode. Only the asked path is read back.
const WRITE = `${SCRIPT_HEAD}
asked=$path mode=$2 owner=$3 new= made=
[ ! -d "$path" ] || exit ${IS_DIRECTORY}
${MAKE_PARENTS}
trap 'rm -f "$new"; [ -z "$made" ] || [ -s "$path" ] || rm -f "$path"' EXIT
if [ -L "$path" ]; then
  if [ ! -e "$path" ]; then
    : >> "$path"
    made=yes
  fi
  target=$(readlink -f "$path"; echo .)
  path=\${target%??}
  [ -e "$path" ] || exit ${IS_SPECIAL}
fi
[ ! -e "$path" ] || [ -f "$path" ] || exit ${IS_SPECIAL}
new=$(mktemp "\${path%/*}/.berth-XXXXXX")
printf '%s\\0' "$new"
cat > "$new"
if [ -f "$path" ] && [ -z "$made" ]; then
  chown -h "\${owner:-$(stat -c %u:%g "$path")}" "$new"
  chmod "\${mode:-$(stat -c %a "$path")}" "$new"
else
  [ -z "$owner" ] || chown -h "$owner" "$new"
  chmod "\${mode:-644}" "$new"
fi
sync -d "$new"
mv -f "$new" "$path"
trap - EXIT
sha256sum < "$asked"`

const BEGIN_READ = `${SCRIPT_HEAD}
[ ! -d "$path" ] || exit ${IS_DIRECTORY}
[ -e "$path" ] || exit ${IS_MISSING}
[ -f "$path" ] || exit ${IS_SPECIAL}
stat -L -c %04a "$path"`
const READ = `${BEGIN_READ}
head -c "$2" "$path"`
const SEND = `${BEGIN_READ}
exec cat "$path"`
// What blocks a call may have been put there after the check.
const LOOK = `${SCRIPT_HEAD}
[ ! -e "$path" ] || [ -f "$path" ] || exit ${IS_SPECIAL}`

/** Enough for a busy machine, whose disk may first have to write what others have left. */
const FILE_TIMEOUT_MS = 30_000
const LOOK_TIMEOUT_MS = 5_000

/** A path and a digest. */
const WRITE_SAYS_BYTES = 8192
/** Of the line that READ says before the content. */
const MODE_LINE_BYTES = '0644\n'.length

export async function writeFileInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  content: Buffer,
  owner: FileOwner = {},
): Promise<WrittenFile> {
  const { stdout } = await readHelper(host, ref, {
    script: WRITE,
    args: [scriptPath(machinePath(path)), ...(await ownerArguments(host, ref, owner))],
    stdin: content,
    ...inTime(host, ref, path),
    maxBytes: WRITE_SAYS_BYTES,
  })
  return written(stdout, createHash('sha256').update(content), content.length)
}

/** Of any size. What breaks off is not taken for the whole: the helper is killed before its input ends. */
export async function receiveFileInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  pieces: AsyncIterable<Buffer>,
  owner: FileOwner,
  signal: AbortSignal,
): Promise<WrittenFile> {
  const failed = new AbortController()
  const hash = createHash('sha256')
  let bytes = 0
  const counted = watched(pieces, failed, (piece) => {
    bytes += piece.length
    if (bytes > limits.streamedFileBytes) throw tooLarge(limits.streamedFileBytes)
    hash.update(piece)
  })
  const either = AbortSignal.any([signal, failed.signal])
  const said: Buffer[] = []
  const helped = {
    script: WRITE,
    args: [scriptPath(machinePath(path)), ...(await ownerArguments(host, ref, owner))],
    stdin: counted,
    timeoutMs: limits.streamedFileMs,
    late: () => new EngineError('timeout', 'The file took too long.'),
    signal: either,
  }
  try {
    await runHelper(host, ref, helped, ({ data }) => void said.push(data))
    return written(Buffer.concat(said), hash, bytes)
  } catch (error) {
    await removeBegun(host, ref, Buffer.concat(said))
    throw either.aborted ? either.reason : error
  }
}

const REMOVE_BEGUN = `${SCRIPT_HEAD}
rm -f "$path"`

/** A helper that is killed leaves behind what it has begun to write; it says first where. */
async function removeBegun(host: EngineContext, ref: MachineRef, said: Buffer): Promise<void> {
  const end = said.indexOf(0)
  const begun = textOfBytes(said.subarray(0, Math.max(end, 0)))
  if (!begun.startsWith('/')) return
  const removed = { script: REMOVE_BEGUN, args: [scriptPath(begun)], timeoutMs: LOOK_TIMEOUT_MS, late: busy }
  await runHelper(host, ref, removed, () => {}).catch((error: unknown) => {
    host.log.warn({ err: error, machine: ref.id }, 'what a broken write left in a machine was not removed')
  })
}

/** What the machine read back, beside what was sent. */
function written(stdout: Buffer, sent: Hash, bytes: number): WrittenFile {
  const sha256 = sent.digest('hex')
  const read = stdout.toString('latin1', stdout.indexOf(0) + 1).slice(0, 64)
  return { bytes, sha256, verified: read === sha256 }
}

export async function readFileInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  maxBytes: number,
  user?: string,
): Promise<ReadFile> {
  const asked = [scriptPath(machinePath(path)), String(maxBytes + 1)]
  const helped = {
    script: READ,
    account: await accountOf(host, ref, user),
    args: asked,
    ...inTime(host, ref, path),
    maxBytes: MODE_LINE_BYTES + maxBytes + 1,
  }
  const { stdout } = await readHelper(host, ref, helped)
  const content = stdout.subarray(MODE_LINE_BYTES)
  if (content.length > maxBytes) throw tooLarge(maxBytes)
  return { content, mode: modeIn(stdout) }
}

/** Of any size. */
export async function sendFileOfMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  onMode: (mode: number) => void,
  onData: (data: Buffer) => void | Promise<void>,
  signal: AbortSignal,
  user?: string,
): Promise<void> {
  const helped = {
    script: SEND,
    account: await accountOf(host, ref, user),
    args: [scriptPath(machinePath(path))],
    timeoutMs: limits.streamedFileMs,
    late: () => new EngineError('timeout', 'The file took too long.'),
    signal,
  }
  let head: Buffer | null = Buffer.alloc(0)
  await runHelper(host, ref, helped, async ({ data }) => {
    if (head === null) return await onData(data)
    head = Buffer.concat([head, data])
    if (head.length < MODE_LINE_BYTES) return
    const [mode, rest] = [modeIn(head), head.subarray(MODE_LINE_BYTES)]
    head = null
    onMode(mode)
    if (rest.length > 0) await onData(rest)
  })
}

function modeIn(said: Buffer): number {
  return Number.parseInt(said.toString('latin1', 0, MODE_LINE_BYTES), 8) & 0o7777
}

function tooLarge(maxBytes: number): EngineError {
  return new EngineError('file_too_large', `The file is larger than ${maxBytes} bytes.`)
}

/** How long a file is waited for, and what it means that this was not enough. */
function inTime(host: EngineContext, ref: MachineRef, path: string): Pick<Helped, 'timeoutMs' | 'late'> {
  const late = async () => {
    const look = {
      script: LOOK,
      args: [scriptPath(machinePath(path))],
      timeoutMs: LOOK_TIMEOUT_MS,
      late: busy,
    }
    await runHelper(host, ref, look, () => {})
    return busy()
  }
  return { timeoutMs: FILE_TIMEOUT_MS, late }
}

function busy(): EngineError {
  const text = `The machine has not answered within ${FILE_TIMEOUT_MS / 1000} seconds: it is busy, or a file of the kernel waits for something.`
  return new EngineError('timeout', `${text} Send the call again.`)
}
