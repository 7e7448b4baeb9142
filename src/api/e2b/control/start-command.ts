// The start command of a template, which each sandbox of it begins: it is kept in a file of the template, and how it begins
// as a label.

import type { Unit } from '../../../contract/unit.ts'
import { logError } from '../../http/errors.ts'
import { type ControlCall, perform } from './call.ts'

/** The label. */
export const START = 'templateStart'
export const STARTS_BY = '/var/lib/template-start'

/** Returns the value of the label. */
export function startingOf(starting: { cmd: string[]; user: string; cwd: string }): string {
  return JSON.stringify(starting)
}

/** What a copy keeps, so that its copies begin the command too. */
export function startLabelIn({ metadata }: Pick<Unit, 'metadata'>): Record<string, string> {
  const kept = metadata[START]
  return kept === undefined ? {} : { [START]: kept }
}

/** A command that cannot begin is in the log alone: the sandbox is there. */
export async function beginStart(call: ControlCall, template: Unit, { id }: Unit): Promise<void> {
  const kept = template.metadata[START]
  if (kept === undefined) return
  const input = async () => ({ params: { id }, body: JSON.parse(kept) as unknown })
  await perform(call, { route: 'POST /v1/units/{id}/processes', input }).catch((error: unknown) =>
    logError(call.app.log, error, call.requestId),
  )
}
