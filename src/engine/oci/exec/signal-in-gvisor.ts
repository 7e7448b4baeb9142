// Signals all processes of one exec in gVisor, where the host cannot see them: the helper looks for the marker that the
// exec put into their environment. A process that removes it only harms its own machine.

import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../kernel/programs.ts'
import type { TerminalSignal } from '../../terminal.ts'
import { execProcess, HELPER, type Process } from '../runtime/bundle.ts'
import { findingCapabilities } from '../runtime/capabilities.ts'
import type { Driver } from '../runtime/driver.ts'

const KILL_TIMEOUT_MS = 10_000

const SCRIPT = `
signal=$2
for round in $3; do
  for file in $(${HELPER} grep -l -s -a "$1" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}; kill "-$signal" "\${pid%/environ}"
  done
done`
/** The arguments of the helper that signal every process with an entry in its environment that begins so. */
export function signalling(marker: string, signal: TerminalSignal): string[] {
  return [HELPER, 'sh', '-c', SCRIPT, 'kill', marker, signal, signal === 'KILL' ? TWICE : '1']
}

/** A process may fork between the listing and the signal. */
const TWICE = '1 2'

/** Returns false if the sandbox did not answer. */
export async function signalInsideGvisor(
  driver: Driver,
  container: string,
  marker: string,
  main: Process,
  execsDir: string,
  signal: TerminalSignal = 'KILL',
): Promise<boolean> {
  const name = `${signal.toLowerCase()}-${marker.split('=')[1]}-${randomBytes(3).toString('hex')}`
  const files = { processFile: join(execsDir, `${name}.json`), pidFile: join(execsDir, `${name}.pid`) }
  const asRoot = execProcess(main, signalling(marker, signal), { asRoot: true })
  const described = { ...asRoot, capabilities: findingCapabilities() }
  await writeFile(files.processFile, JSON.stringify(described), { mode: 0o600 })
  try {
    const asked = driver.execArgs(container, files)
    const timeoutMs = Math.min(KILL_TIMEOUT_MS, driver.deadlineMs)
    return !(await run(driver.binary, asked, { timeoutMs })).timedOut
  } finally {
    await Promise.all([rm(files.processFile, { force: true }), rm(files.pidFile, { force: true })])
  }
}
