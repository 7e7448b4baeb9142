// Tools about permissions and limits, the audit log and support.

import { z } from 'zod'
import type { AuditList } from '../../../contract/audit.ts'
import { strict, text } from '../../../contract/fields.ts'
import type { Quota } from '../../../contract/quota.ts'
import { limits } from '../../../contract/limits.ts'
import { supportMessageSchema, type SupportTicket } from '../../../contract/support.ts'
import type { Usage } from '../../../contract/usage.ts'
import { getPricing } from '../../../domain/units/pricing.ts'
import { cleanLine } from '../clean.ts'
import { cutMiddle } from '../cut.ts'
import { count, fence, newMark } from '../fence.ts'
import { defineTool, hints, recordResult, textResult, type Tool } from '../tool.ts'
import { cursorArgument } from './arguments.ts'

const AUDIT_CHARACTERS = 40_000
const INPUT_LENGTH = 300

const getLimits = defineTool({
  name: 'get_limits',
  title: 'Limits and cost',
  description:
    "What you may still spend and run today, what sizes cost an hour, the team's credits, and with days what was used.",
  input: strict({ days: z.int().min(1).max(90).optional().describe('Usage of so many days.') }),
  output: z.looseObject({}),
  hints: hints.reads,
  operation: ({ days }) => (days === undefined ? 'GET /v1/quota' : 'GET /v1/usage'),
  ask: (_app, _caller, { days }) => (days === undefined ? {} : { query: { days: String(days) } }),
  result: (told: Quota | Usage, _args, { app }) => {
    if (!('units' in told)) return recordResult({ ...told })
    const sizes = getPricing(app.config).sizes.filter(({ size }) => told.allowedSizes.includes(size))
    return recordResult({ ...told, sizes })
  },
})

const readAudit = defineTool({
  name: 'read_audit',
  title: 'Read the audit log',
  description: 'Who did what in this team, newest first, this client included.',
  input: strict({
    agent: text(200).optional().describe('Only of this agent.'),
    limit: z.int().min(1).max(200).default(30),
    cursor: cursorArgument.optional(),
  }),
  hints: hints.reads,
  operation: 'GET /v1/audit',
  ask: (_app, _caller, { agent, limit, cursor }) => ({
    query: {
      limit: String(limit),
      ...(agent === undefined ? {} : { agent }),
      ...(cursor === undefined ? {} : { cursor }),
    },
  }),
  result: ({ events, next }: AuditList) => {
    const goOn = next === null ? '' : ` · next: ${next} (send it as cursor for older ones)`
    const shown = events.map(shownEvent).join('\n')
    const head = `${count(events.length)} calls, newest first${goOn}`
    return textResult(
      `${head}\n${fence('audit', newMark(), cutMiddle(shown, AUDIT_CHARACTERS), 'lower limit')}`,
    )
  },
})

/** Others chose the words of these fields: each event becomes one cleaned line. */
function shownEvent(event: AuditList['events'][number]): string {
  const { at, credential, action, target, status, errorCode, via, agentName, costDeltaCents, input } = event
  const asked = input === null ? '' : ` ${JSON.stringify(input)}`
  const ended = errorCode === null ? String(status ?? 'unfinished') : `${status} ${errorCode}`
  const cost = costDeltaCents > 0 ? ` ${costDeltaCents} ct` : ''
  const who = `${credential.kind} "${credential.name}" via ${via}${agentName === null ? '' : ` by ${agentName}`}`
  return cleanLine(`${at} ${action} ${target ?? '-'} → ${ended}${cost}, ${who}${asked}`, INPUT_LENGTH + 200)
}

const contactSupport = defineTool({
  name: 'contact_support',
  title: 'Write to the operator',
  description:
    'Send a question, bug or idea to who runs this service; the answer goes to your person by mail.',
  input: strict({
    topic: supportMessageSchema.shape.topic,
    message: z.string().max(limits.supportMessageLength),
  }),
  hints: { ...hints.adds, openWorldHint: true },
  operation: 'POST /v1/support',
  ask: (_app, _caller, body) => ({ body }),
  result: (sent: SupportTicket) => recordResult({ ...sent }),
})

export const accountTools: readonly Tool[] = [getLimits, readAudit, contactSupport]
