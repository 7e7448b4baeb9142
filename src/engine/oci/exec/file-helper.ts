// Files of a running machine, through the machine itself: the helper runs inside it, so the host never
// opens a path that a unit controls (reliability rule 9). What the helper finds decides; what it answers is
// bounded in size and time.

import type { Account } from '../runtime/bundle.ts'
import { boundedText } from '../../../lib/bounded-text.ts'
import type { MachineRef } from '../../engine.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import { bytesOfText } from '../../../lib/byte-text.ts'
import { EngineError, isEngineError } from '../../errors.ts'
import { HELPER } from '../runtime/bundle.ts'
import { execInMachine } from './exec.ts'
import type { OnOutput, Stdin } from '../kernel/pipes.ts'
import { getRunning, type EngineContext } from '../machine/context.ts'

/** How long after its last word the end of a machine may become known: no less than is allowed for telling it (F7). */
const MACHINE_ENDS_WITHIN_MS = 5_000
const COMPLAINT_CHARACTERS = 1000

export const IS_DIRECTORY = 41
export const IS_MISSING = 42
export const IS_SPECIAL = 43
export const IS_NO_DIRECTORY = 44
export const IS_NOT_EMPTY = 45

const sharedOutcomes: Record<number, () => EngineError> = {
  [IS_DIRECTORY]: () => new EngineError('not_a_file', 'The path is a directory.'),
  [IS_MISSING]: () => new EngineError('file_not_found', 'There is no file at that path.'),
  [IS_SPECIAL]: () => new EngineError('not_a_file', 'The path is not a regular file.'),
  [IS_NO_DIRECTORY]: () => new EngineError('not_a_directory', 'The path is not a directory.'),
  [IS_NOT_EMPTY]: () => new EngineError('directory_not_empty', 'The directory is not empty.'),
}

// The helper's shell runs its own tools under their bare names, without an execve each and whatever the
// machine has put into its PATH. A path that is not UTF-8 comes as octal escapes, since an argument is text.
export const SCRIPT_HEAD = `
set -eu
case $1 in
  /*) path=$1 ;;
  *) path=$(printf '%b.' "$1"); path=\${path%.} ;;
esac`

/** A path as a script takes it. */
export function scriptPath(path: string): string {
  if (path.isWellFormed()) return path
  return [...bytesOfText(path)].map((byte) => `\\0${byte.toString(8).padStart(3, '0')}`).join('')
}

export type Helped = {
  script: string
  args: string[]
  /** As whom it runs; absent or null: as root. */
  account?: Account | null
  stdin?: Stdin
  timeoutMs: number
  /** What it means that it did not answer in time. */
  late: () => EngineError | Promise<EngineError>
  /** What its complaint says to callers; null: nothing. */
  explain?: (complaint: string) => string | null
  /** What exit codes of this script's own mean. */
  outcomes?: Record<number, () => EngineError>
  signal?: AbortSignal | undefined
}

/** Throws what the helper's end means. */
export async function runHelper(
  host: EngineContext,
  ref: MachineRef,
  { script, args, account = null, stdin = null, timeoutMs, late, signal, outcomes, explain }: Helped,
  onOutput: OnOutput,
): Promise<void> {
  const said = boundedText(COMPLAINT_CHARACTERS)
  const collect: OnOutput = async (output) => {
    if (output.stream === 'stdout') return await onOutput(output)
    said.add(output.data)
  }
  const machine = getRunning(host, ref)
  const argv = [HELPER, 'sh', '-c', script, 'file', ...args]
  // The working directory of the machine may be one that the user may not enter.
  const request = {
    argv,
    stdin,
    timeoutMs,
    ...(account && { account, env: { HOME: account.home }, cwd: '/' }),
  }
  const { exitCode, timedOut } = await execInMachine(host, ref, request, collect, signal, {
    asRoot: account === null,
  }).catch((error: unknown) => {
    throw isEngineError(error, 'run_ended') ? endedMeanwhile() : error
  })
  if (signal?.aborted) throw signal.reason
  if (timedOut) throw await late()
  if (exitCode === 0) return
  const told = outcomes?.[exitCode] ?? sharedOutcomes[exitCode]
  if (told) throw told()
  const complaint = said.text()
  if (isFull.test(complaint)) throw new EngineError('disk_full', 'There is no room left for the file.')
  const known = explain?.(complaint) ?? refusals.find((words) => complaint.includes(words))
  // A helper that fails without output may have ended with its machine, before that end was reported.
  if (known === undefined && (await completesWithin(host.clock, MACHINE_ENDS_WITHIN_MS, machine.ended)))
    throw endedMeanwhile()
  const why = known ?? 'the file could not be read or written there'
  throw new EngineError('file_refused', `The machine refused it: ${why}.`)
}

/** With the first bytes of what it answers. */
export async function readHelper(
  host: EngineContext,
  ref: MachineRef,
  { maxBytes, ...helped }: Helped & { maxBytes: number },
): Promise<{ stdout: Buffer }> {
  const chunks: Buffer[] = []
  let bytes = 0
  await runHelper(host, ref, helped, ({ data }) => {
    if (bytes < maxBytes) chunks.push(data.subarray(0, maxBytes - bytes))
    bytes += data.length
  })
  return { stdout: Buffer.concat(chunks) }
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
  'Is a directory',
  'nonexistent directory',
  'No such file or directory',
  'Too many levels of symbolic links',
  'Operation not permitted',
  'Device or resource busy',
]
