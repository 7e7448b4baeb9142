// A line of Berth's own in a machine's log: what its reader must know and the machine cannot say.

import { appendFile } from 'node:fs/promises'
import type { EngineContext } from '../machine/context.ts'
import { currentLogFile } from './logs.ts'

/** Adds it to the log of a run, as one row of stderr. conmon appends its rows too, so neither cuts the other's. */
export async function noteInLog(
  host: Pick<EngineContext, 'paths' | 'clock'>,
  id: string,
  generation: number,
  text: string,
): Promise<void> {
  const row = `${host.clock.now().toISOString()} stderr F berth: ${text.replaceAll(/\s+/g, ' ')}\n`
  await appendFile(currentLogFile(host, id, generation), row, { mode: 0o600 })
}
