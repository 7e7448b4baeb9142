// Single files of a running machine, written and read by the helper in it (file-helper.ts). From the host, without a
// machine, storage/unit-tree.ts does that.

import { createHash } from 'node:crypto'
import type { MachineRef, WrittenFile } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { machinePath } from '../../machine-path.ts'
import type { EngineContext } from '../context.ts'
import { IS_DIRECTORY, IS_MISSING, IS_SPECIAL, readHelper, SCRIPT_HEAD } from './file-helper.ts'

// Links are followed as any program in the machine would (but not to a pipe or socket, which has no name to replace).
// Then the file is replaced in one step: a reader sees the old content or the new. Mode and owner of an existing file
// stay.
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
  const { stdout } = await readHelper(host, ref, {
    script: WRITE,
    args: [machinePath(path)],
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
): Promise<Buffer> {
  const asked = [machinePath(path), String(maxBytes + 1)]
  const { stdout } = await readHelper(host, ref, { script: READ, args: asked, maxBytes: maxBytes + 1 })
  if (stdout.length > maxBytes)
    throw new EngineError('file_too_large', `The file is larger than ${maxBytes} bytes.`)
  return stdout
}
