// What `npm test` runs beside the host tier, in a process of its own that gives way to it (decisions/tests.md). The host
// tier waits for almost half of its time. These files compute most of theirs: matrices of calls to the domain and the API
// in their own process, on a clock that they set, and of pages, so that they find the same however slowly they run.

import { spawn } from 'node:child_process'

/** Files of the fast tier, in which they run whenever it is asked for alone. */
export const filesBeside = [
  'src/domain/forks/fault-loops.test.ts',
  'src/domain/recipes/fault-loops.test.ts',
  'src/domain/units/fault-loops.test.ts',
  'src/store/meters.test.ts',
  'test/api/broken-connections.test.ts',
  'test/api/fuzz.test.ts',
  'test/api/idempotency-faults.test.ts',
  'test/api/oauth-differential.test.ts',
  'test/coverage/failing-steps.test.ts',
  'test/coverage/faults.test.ts',
  'test/coverage/roles.test.ts',
  'test/coverage/routes.test.ts',
  'test/coverage/strangers.test.ts',
  'test/coverage/tools.test.ts',
  'test/dashboard/accessible.test.ts',
  'test/dashboard/docs-accessible.test.ts',
  'test/dashboard/keyboard.test.ts',
  'test/dashboard/pictures.test.ts',
]

/** In this order. */
export const tiersBeside = ['simulation', 'matrices']

/** Set by scripts/test.ts where all tiers run. */
export const BESIDE_VARIABLE = 'BERTH_TEST_BESIDE'

/** Returns the files that the fast tier leaves out, since they run beside the host tier. */
export function filesLeftToBeside(): string[] {
  return process.env[BESIDE_VARIABLE] === 'yes' ? filesBeside : []
}

/** So that they get what the host tier leaves, and still a tenth of a processor that it keeps busy. */
const NICENESS = '10'
const MAX_TOLD_CHARACTERS = 2000

export type RunBeside<T> = {
  /** What it said with `report`; null if it ended before. */
  reported: T | null
  output: string
  /** The end of its output, for a failure. */
  end: string
}

/** Runs a script once more for the tier `beside`. It ends with this process, whatever becomes of that. */
export async function runBeside<T>(script: string): Promise<RunBeside<T>> {
  const child = spawn('nice', ['-n', NICENESS, process.execPath, script, 'beside'], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // Maps and sets stay what they are.
    serialization: 'advanced',
  })
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => void output.push(text))
  let reported: T | null = null
  child.on('message', (message) => void (reported = message as T))
  await new Promise<void>((resolve) => {
    child.once('error', (error) => {
      output.push(String(error))
      resolve()
    })
    child.once('close', () => resolve())
  })
  const text = output.join('')
  return { reported, output: text, end: text.slice(-MAX_TOLD_CHARACTERS) }
}

/** For the process that `runBeside` has started. */
export function endWithParent(): void {
  process.once('disconnect', () => process.exit(1))
}

/** Tells `runBeside`, and ends. */
export async function report(outcome: unknown): Promise<never> {
  await new Promise((resolve) => process.send?.(outcome, resolve))
  process.exit(0)
}
