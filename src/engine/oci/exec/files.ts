// Single files of a running machine, written and read by the helper in it (file-helper.ts). From the host, without a
// machine, storage/unit-tree.ts does that.

import { createHash } from 'node:crypto'
import type { MachineRef, ReadFile, WrittenFile } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { machinePath } from '../../machine-path.ts'
import type { EngineContext } from '../context.ts'
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

// A link is followed as by any program in the machine: where it leads to nothing yet, the kernel itself makes the file that
// an `open` would, or says why not. Then the file is replaced in one step: a reader sees the old content or the new. The
// owner of an existing file stays, and its mode if the caller gives none. Only the asked path is read back.
const WRITE = `${SCRIPT_HEAD}
asked=$path mode=$2 new= made=
[ ! -d "$path" ] || exit ${IS_DIRECTORY}
[ -d "\${path%/*}/" ] || mkdir -p "\${path%/*}/"
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
cat > "$new"
if [ -f "$path" ] && [ -z "$made" ]; then
  chown "$(stat -c %u:%g "$path")" "$new"
  chmod "\${mode:-$(stat -c %a "$path")}" "$new"
else
  chmod "\${mode:-644}" "$new"
fi
sync -d "$new"
mv -f "$new" "$path"
trap - EXIT
sha256sum < "$asked"`

const READ = `${SCRIPT_HEAD}
[ ! -d "$path" ] || exit ${IS_DIRECTORY}
[ -e "$path" ] || exit ${IS_MISSING}
[ -f "$path" ] || exit ${IS_SPECIAL}
stat -L -c %04a "$path"
head -c "$2" "$path"`
// What blocks a call may have been put there after the check.
const LOOK = `${SCRIPT_HEAD}
[ ! -e "$path" ] || [ -f "$path" ] || exit ${IS_SPECIAL}`

/** Enough for a busy machine, whose disk may first have to write what others have left. */
const FILE_TIMEOUT_MS = 30_000
const LOOK_TIMEOUT_MS = 5_000

/** Of the line that READ says before the content. */
const MODE_LINE_BYTES = '0644\n'.length

export async function writeFileInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  content: Buffer,
  mode?: number,
): Promise<WrittenFile> {
  const { stdout } = await readHelper(host, ref, {
    script: WRITE,
    args: [scriptPath(machinePath(path)), mode?.toString(8) ?? ''],
    stdin: content,
    ...inTime(host, ref, path),
    maxBytes: 4096,
  })
  const read = stdout.toString('latin1').slice(0, 64)
  const sha256 = createHash('sha256').update(content).digest('hex')
  return { bytes: content.length, sha256, verified: read === sha256 }
}

export async function readFileInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  maxBytes: number,
): Promise<ReadFile> {
  const asked = [scriptPath(machinePath(path)), String(maxBytes + 1)]
  const helped = {
    script: READ,
    args: asked,
    ...inTime(host, ref, path),
    maxBytes: MODE_LINE_BYTES + maxBytes + 1,
  }
  const { stdout } = await readHelper(host, ref, helped)
  const content = stdout.subarray(MODE_LINE_BYTES)
  if (content.length > maxBytes)
    throw new EngineError('file_too_large', `The file is larger than ${maxBytes} bytes.`)
  return { content, mode: Number.parseInt(stdout.toString('latin1', 0, MODE_LINE_BYTES), 8) & 0o7777 }
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
