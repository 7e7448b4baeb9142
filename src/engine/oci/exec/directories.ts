// Directories of a running machine, listed and removed by the helper inside of it (file-helper.ts).

import { accountOf } from './as-user.ts'
import { limits } from '../../../contract/limits.ts'
import type { Directory, DirectoryEntry, EntryFacts, FileFacts, MachineRef } from '../../engine.ts'
import { textOfBytes } from '../../../lib/byte-text.ts'
import { EngineError } from '../../errors.ts'
import { machineDirectory, machinePath } from '../../machine-path.ts'
import type { EngineContext } from '../machine/context.ts'
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
import { accountsIn, namesIn, SAID_BYTES, SAY_ACCOUNTS } from './users.ts'

const LIST_TIMEOUT_MS = 20_000
/** Of a path, as the kernel bounds it. */
const TARGET_BYTES = 4096
/** A tree of many small files. */
const REMOVE_TIMEOUT_MS = 120_000
/** Of what the helper says of a directory: room for `directoryEntries` with names of common length. */
const LISTING_BYTES = 4 * 1024 * 1024

// No name holds a slash, and no path two in a row, so these end it, whatever else is in it.
const LIST = `${SCRIPT_HEAD}
[ -e "$path" ] || [ -L "$path" ] || exit ${IS_MISSING}
[ -d "$path" ] || exit ${IS_NO_DIRECTORY}
${SAY_ACCOUNTS}
cd "$path"
find . -mindepth 1 -maxdepth "$3" -print0 | xargs -0 -r ${HELPER} stat -c '%n//%f %s %Y %u %g' 2>/dev/null | head -c "$2"`

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
  depth = 1,
  user?: string,
): Promise<Directory> {
  const { stdout } = await readHelper(host, ref, {
    script: LIST,
    account: await accountOf(host, ref, user),
    args: [scriptPath(machineDirectory(path)), String(LISTING_BYTES), String(depth)],
    timeoutMs: LIST_TIMEOUT_MS,
    late: () => new EngineError('timeout', 'The directory took too long to list.'),
    maxBytes: SAID_BYTES + LISTING_BYTES,
  })
  const { accounts, rest } = accountsIn(stdout)
  const entries = entriesIn(rest.toString('latin1'), namesIn(accounts)).toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  )
  const truncated = rest.length === LISTING_BYTES || entries.length > limits.directoryEntries
  return { entries: entries.slice(0, limits.directoryEntries), truncated }
}

const STAT = `${SCRIPT_HEAD}
[ -e "$path" ] || [ -L "$path" ] || exit ${IS_MISSING}
${SAY_ACCOUNTS}
stat -c '%f %s %Y %u %g' "$path"
[ ! -L "$path" ] || readlink "$path"`

/** A link itself, with where it leads. */
export async function statInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  user?: string,
): Promise<FileFacts> {
  const { stdout } = await readHelper(host, ref, {
    script: STAT,
    account: await accountOf(host, ref, user),
    args: [scriptPath(machineDirectory(path))],
    timeoutMs: LIST_TIMEOUT_MS,
    late: () => new EngineError('timeout', 'The machine took too long to look at the path.'),
    maxBytes: SAID_BYTES + 2 * TARGET_BYTES,
  })
  const { accounts, rest } = accountsIn(stdout)
  const said = rest.toString('latin1')
  const [line = '', ...facts] = ONE.exec(said) ?? []
  if (line === '') throw new EngineError('file_refused', 'The machine says nothing of the path.')
  const found = factsOf(facts, namesIn(accounts))
  const target = said.slice(line.length).replace(/\n$/, '')
  return { ...found, target: found.type === 'link' ? textOfBytes(Buffer.from(target, 'latin1')) : null }
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

/** What `stat` says of an entry with the format `FACTS`. */
const FACTS_SAID = '([0-9a-f]{1,8}) (\\d{1,20}) (-?\\d{1,20}) (\\d{1,10}) (\\d{1,10})\\n'
const ENTRY = `\\./((?:(?!//)[^])*)//${FACTS_SAID}`
const ONE = new RegExp(`^${FACTS_SAID}`)

type Names = ReturnType<typeof namesIn>

/** What the helper said; whatever a machine says in its place is cut where it is no such line. */
function entriesIn(said: string, names: Names): DirectoryEntry[] {
  return [...said.matchAll(new RegExp(ENTRY, 'gy'))].map(([, name = '', ...facts]) => ({
    name: textOfBytes(Buffer.from(name, 'latin1')),
    ...factsOf(facts, names),
  }))
}

function factsOf(
  [mode = '', bytes = '', seconds = '', uid = '', gid = '']: string[],
  names: Names,
): EntryFacts {
  return {
    type: types[Number.parseInt(mode, 16) & S_IFMT] ?? 'other',
    mode: Number.parseInt(mode, 16) & PERMISSIONS,
    bytes: Math.min(Number(bytes), Number.MAX_SAFE_INTEGER),
    modifiedAt: new Date(Math.min(Math.max(Number(seconds), 0), LAST_SECOND) * 1000),
    uid: Number(uid),
    gid: Number(gid),
    owner: names.owner(Number(uid)),
    group: names.group(Number(gid)),
  }
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
