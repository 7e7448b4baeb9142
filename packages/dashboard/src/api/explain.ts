// What an error says to a person: what happened, what to do, and what to give the operator. The one place for it.

import { BerthError } from '@berth/sdk'

export type Explained = {
  title: string
  /** What the service said, and what to do about it. */
  text: string
  /** Fields of a form that were refused: path, message. */
  fields: { path: string; message: string }[]
  /** Where the way out is a page: below the team's address. */
  link: { to: '/spend' | '/agents' | '/credits'; text: string } | null
  requestId: string | null
}

const titles: Partial<Record<string, string>> = {
  validation: 'Some of this is not valid',
  unauthorized: 'You are signed out',
  forbidden: 'You may not do this here',
  policy_violation: 'A limit does not allow this',
  quota_exceeded: 'A limit of the team is reached',
  payment_required: 'This costs more than is left',
  not_found: 'Not found in this team',
  invalid_state: 'Not in this state',
  conflict: 'Another change came first',
  payload_too_large: 'This is too large',
  connection_failed: 'Berth cannot be reached',
  timed_out: 'No answer came in time',
  unavailable: 'Berth is not ready',
  provider_error: 'The host could not do this',
  internal: 'Berth had an internal error',
}

/** What was refused of a field of a form, or of what is within it. */
export function faultAt(fields: Explained['fields'] | undefined, path: string): string | undefined {
  return fields?.find((each) => each.path === path || each.path.startsWith(`${path}.`))?.message
}

export function explain(error: unknown): Explained {
  if (!(error instanceof BerthError))
    return {
      title: 'This page failed',
      text: sentences(error instanceof Error ? error.message : String(error)),
      fields: [],
      link: null,
      requestId: null,
    }
  return {
    title: error.status === 429 ? 'Too many calls at once' : (titles[error.code] ?? 'This did not work'),
    text: sentences(saidBy(error), wayOut(error)),
    fields: fieldsOf(error.details),
    link: linkOf(error),
    requestId: error.requestId,
  }
}

/** Without what the title says: of a fault, and of a call without an answer the browser's `Failed to fetch`. */
function saidBy({ code, message }: BerthError): string {
  if (code === 'internal') return ''
  return code === 'connection_failed' && message.includes('cannot be reached: ') ? '' : message
}

/** One after another, each with its end. */
function sentences(...parts: string[]): string {
  return parts
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part) => (/[.!?…]$/.test(part) ? part : `${part}.`))
    .join(' ')
}

function wayOut(error: BerthError): string {
  if (error.status === 429)
    return `Try again ${error.retryAfterMs === null ? 'in a while' : `in ${Math.ceil(error.retryAfterMs / 1000)} s`}.`
  if (error.status === 409) return 'What is shown here is what it is now.'
  if (error.code === 'connection_failed') return 'Check your network, then try again.'
  if (error.code === 'internal') return 'Try again. If it happens again, tell the operator the request below.'
  return ''
}

function linkOf(error: BerthError): Explained['link'] {
  if (error.code === 'policy_violation') return { to: '/agents', text: 'See the limits' }
  if (error.status === 402) return { to: '/credits', text: 'See the credits' }
  return null
}

function fieldsOf(details: unknown): Explained['fields'] {
  const list: unknown[] = Array.isArray(details) ? details : []
  return list.flatMap((each) => {
    const { path, message } = (each ?? {}) as { path?: unknown; message?: unknown }
    if (typeof message !== 'string') return []
    return [{ path: Array.isArray(path) ? path.join('.') : typeof path === 'string' ? path : '', message }]
  })
}
