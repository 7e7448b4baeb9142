// Single files of a running machine, written and read by the helper in it (file-helper.ts). From the host, without a
// machine, storage/unit-tree.ts does that.

import { createHash } from 'node:crypto'
import type { MachineRef, ReadFile, WrittenFile } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { machinePath } from '../../machine-path.ts'
import type { EngineContext } from '../context.ts'
import { IS_DIRECTORY, IS_MISSING, IS_SPECIAL, readHelper, SCRIPT_HEAD } from './file-helper.ts'

// Links are followed as any program in the machine would (but not to a pipe or socket, which has no name to replace).
// Then the file is replaced in one step: a reader sees the old content or the new. The owner of an existing file stays,
// and its mode if the caller gives none.
const WRITE = `${SCRIPT_HEAD}
mode=$2
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
  chmod "\${mode:-$(stat -c %a "$path")}" "$new"
else
  chmod "\${mode:-644}" "$new"
fi
sync -d "$new"
mv -f "$new" "$path"
trap - EXIT
sha256sum < "$path"`

const READ = `${SCRIPT_HEAD}
[ ! -d "$path" ] || exit ${IS_DIRECTORY}
[ -e "$path" ] || exit ${IS_MISSING}
[ -f "$path" ] || exit ${IS_SPECIAL}
stat -L -c %04a "$path"
head -c "$2" "$path"`
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
    args: [machinePath(path), mode?.toString(8) ?? ''],
    stdin: content,
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
  const asked = [machinePath(path), String(maxBytes + 1)]
  const helped = { script: READ, args: asked, maxBytes: MODE_LINE_BYTES + maxBytes + 1 }
  const { stdout } = await readHelper(host, ref, helped)
  const content = stdout.subarray(MODE_LINE_BYTES)
  if (content.length > maxBytes)
    throw new EngineError('file_too_large', `The file is larger than ${maxBytes} bytes.`)
  return { content, mode: Number.parseInt(stdout.toString('latin1', 0, MODE_LINE_BYTES), 8) & 0o7777 }
}
