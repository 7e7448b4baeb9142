// Watches a directory of a running machine by a program in it (watch.c says what it does and why). What it says is the
// machine's word, and bounded.

import { limits } from '../../../contract/limits.ts'
import { textOfBytes } from '../../../lib/byte-text.ts'
import type { FileChange, MachineRef, OnChanges } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { machineDirectory } from '../../machine-path.ts'
import type { EngineContext } from '../machine/context.ts'
import { IS_MISSING, IS_NO_DIRECTORY, runHelper, SCRIPT_HEAD, scriptPath } from './file-helper.ts'
import { WATCH_PROGRAM } from '../machine-programs/watch.ts'

const SCRIPT = `${SCRIPT_HEAD}
[ -e "$path" ] || exit ${IS_MISSING}
[ -d "$path" ] || exit ${IS_NO_DIRECTORY}
exec ${WATCH_PROGRAM} $2 "$path"`

/** A path, with its letters and its end. */
const RECORD_BYTES = 4096 + 3

export async function watchFilesInMachine(
  host: EngineContext,
  ref: MachineRef,
  path: string,
  recursive: boolean,
  { onBegun, onChanges }: OnChanges,
  signal: AbortSignal,
): Promise<void> {
  const helped = {
    script: SCRIPT,
    args: [scriptPath(machineDirectory(path)), recursive ? '-r' : ''],
    timeoutMs: limits.watchMs,
    late: () => new EngineError('timeout', 'The directory was watched for as long as one call may.'),
    signal,
  }
  let rest: Buffer = Buffer.alloc(0)
  await runHelper(host, ref, helped, async ({ data }) => {
    const said = rest.length === 0 ? data : Buffer.concat([rest, data])
    const end = said.lastIndexOf(0) + 1
    rest = said.subarray(end)
    if (rest.length > RECORD_BYTES) throw new EngineError('file_refused', 'The machine says no changes.')
    const records = recordsIn(said.subarray(0, end))
    if (records.includes(BEGUN)) onBegun()
    const changes = records.flatMap((record) => changeOf(record) ?? [])
    if (changes.length > 0) await onChanges(changes)
  })
}

const BEGUN = 'bd'

/** Each as latin-1, in which a byte is a character. */
function recordsIn(said: Buffer): string[] {
  return said.toString('latin1').split('\0').slice(0, -1)
}

const types = { c: 'create', w: 'write', r: 'remove', n: 'rename', m: 'chmod' } as const

/** Null for what is no change. */
function changeOf(record: string): FileChange | null {
  const [what = '', kind] = record
  const isDirectory = kind === 'd'
  if (what === 'o') return { type: 'overflow', lost: isDirectory ? 'directories' : 'changes' }
  if (!Object.hasOwn(types, what)) return null
  const path = textOfBytes(Buffer.from(record.slice(2), 'latin1'))
  return { type: types[what as keyof typeof types], path, isDirectory }
}
