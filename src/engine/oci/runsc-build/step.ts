// One program of the build. It is bounded in time and in what it may print.

import { run } from '../../../lib/process.ts'

const STEP_TIMEOUT_MS = 30 * 60_000
const COMPLAINT_CHARACTERS = 400

/** Returns what it prints. Throws a sentence with its last words if it fails. */
export async function step(
  program: string,
  args: string[],
  options: { cwd: string; env?: Record<string, string> },
): Promise<string> {
  // It ends with this process: nothing goes on compiling for a build that is over.
  const said = await run('setpriv', ['--pdeathsig', 'KILL', program, ...args], {
    ...options,
    timeoutMs: STEP_TIMEOUT_MS,
  })
  if (said.exitCode === 0) return said.stdout
  const why = said.timedOut ? 'it took too long' : said.stderr.trim().slice(-COMPLAINT_CHARACTERS)
  throw new Error(`${program} ${args[0] ?? ''} failed: ${why}`)
}
