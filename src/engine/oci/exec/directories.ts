// Directories of a running machine, listed and removed by the helper inside of it (file-helper.ts).

import { limits } from '../../../contract/limits.ts'
import type { Directory, DirectoryEntry, MachineRef } from '../../engine.ts'
import { textOfBytes } from '../../../lib/byte-text.ts'
import { EngineError } from '../../errors.ts'
import { machineDirectory, machinePath } from '../../machine-path.ts'
import type { EngineContext } from '../context.ts'
import { HELPER } from '../runtime/bundle.ts'
import {
  IS_MISSING,
  IS_NO_DIRECTORY,
  IS_NOT_EMPTY,
  readHelper,
  runHelper,
  SCRIPT_HEAD,
  scriptPath,
} from './file-helper.ts'

const LIST_TIMEOUT_MS = 20_000
/** A tree of many small files. */
const REMOVE_TIMEOUT_MS = 120_000
/** Of what the helper says of a directory: room for `directoryEntries` with names of common length. */
const LISTING_BYTES = 4 * 1024 * 1024

// No name holds a slash, so one ends it, whatever else is in it.
const LIST = `${SCRIPT_HEAD}
[ -e "$path" ] || [ -L "$path" ] || exit ${IS_MISSING}
[ -d "$path" ] || exit ${IS_NO_DIRECTORY}
cd "$path"
find . -mindepth 1 -maxdepth 1 -print0 | xargs -0 -r ${HELPER} stat -c '%n/%f %s %Y' 2>/dev/null | head -c "$2"`

const REMOVE = `${SCRIPT_HEAD}
[ -e "$path" ] || [ -L "$path" ] || exit ${IS_MISSING}
if [ -L "$path" ] || [ ! -d "$path" ]; then
  rm -f "$path"
elif [ "$2" = recursive ]; then
  rm -rf "$path"
else
  [ -z "$(find "$path" -mindepth 1 -maxdepth 1 -print0 | head -c 1 | tr '\\0' .)" ] || exit ${IS_NOT_EMPTY}
  rmdir "$path"
fi`

export async function listDirectoryInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
): Promise<Directory> {
  const { stdout } = await readHelper(host, ref, {
    script: LIST,
    args: [scriptPath(machineDirectory(path)), String(LISTING_BYTES)],
    timeoutMs: LIST_TIMEOUT_MS,
    late: () => new EngineError('timeout', 'The directory took too long to list.'),
    maxBytes: LISTING_BYTES,
  })
  const entries = entriesIn(stdout.toString('latin1')).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const truncated = stdout.length === LISTING_BYTES || entries.length > limits.directoryEntries
  return { entries: entries.slice(0, limits.directoryEntries), truncated }
}

export async function removeFileInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  recursive: boolean,
): Promise<void> {
  const helped = {
    script: REMOVE,
    args: [scriptPath(machinePath(path)), recursive ? 'recursive' : ''],
    timeoutMs: REMOVE_TIMEOUT_MS,
    late: () => new EngineError('timeout', 'It took too long to remove all of it; part of it is gone.'),
  }
  await runHelper(host, ref, helped, () => {})
}

const ENTRY = /\.\/([^/]*)\/([0-9a-f]{1,8}) (\d{1,20}) (-?\d{1,20})\n/y

/** What the helper said; whatever a machine says in its place is cut where it is no such line. */
function entriesIn(said: string): DirectoryEntry[] {
  return [...said.matchAll(new RegExp(ENTRY, 'gy'))].map(
    ([, name = '', mode = '', bytes = '', seconds = '']) => ({
      name: textOfBytes(Buffer.from(name, 'latin1')),
      type: types[Number.parseInt(mode, 16) & S_IFMT] ?? 'other',
      mode: Number.parseInt(mode, 16) & PERMISSIONS,
      bytes: Math.min(Number(bytes), Number.MAX_SAFE_INTEGER),
      modifiedAt: new Date(Math.min(Math.max(Number(seconds), 0), LAST_SECOND) * 1000),
    }),
  )
}

const S_IFMT = 0o170000
const PERMISSIONS = 0o7777
const types: Record<number, DirectoryEntry['type']> = {
  0o100000: 'file',
  0o040000: 'directory',
  0o120000: 'link',
}
/** Of the year 9999. */
const LAST_SECOND = 253_402_300_799
