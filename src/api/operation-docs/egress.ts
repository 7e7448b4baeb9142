// What units may reach, and what they reached.

import { openEgress } from '../../lib/egress/rules.ts'
import { type OperationDoc, sseExample } from './doc.ts'
import { free, unitBusy } from './units.ts'
import { startedAt } from './values.ts'

const rules = { mode: 'listed', allow: ['preset:npm', 'api.github.com', 'github.com:22'], siblings: 'stack' }
const refusedLine = {
  at: startedAt,
  host: 'telemetry.example.com',
  address: null,
  port: null,
  protocol: 'dns',
  decision: 'refused',
  rule: null,
  reason: 'No entry of "allow" names telemetry.example.com: add telemetry.example.com.',
  entry: 'telemetry.example.com',
  secret: null,
  bytesIn: 0,
  bytesOut: 0,
  count: 3,
}
const allowedLine = {
  ...refusedLine,
  host: 'registry.npmjs.org',
  address: '104.16.2.34',
  port: 443,
  protocol: 'tls',
  decision: 'allowed',
  rule: 'registry.npmjs.org',
  reason: 'The entry registry.npmjs.org allows it.',
  entry: null,
  bytesIn: 1_482_004,
  bytesOut: 6120,
  count: 12,
}

export const egressDocs: Record<string, OperationDoc> = {
  unitEgressLog: {
    answer:
      'Lines in the order in which they last changed. A name that is refused when it is looked up has no port: `entry` is what to add to `allow`. Send `next` as `since` for what came or grew after these.',
    cost: free,
    response: { lines: [refusedLine, allowedLine], next: '4711' },
    events: sseExample([{ event: 'line', id: '4711', data: refusedLine }]),
  },
  unitEgressRead: {
    answer: 'The rules, and since when they are in force.',
    cost: free,
    response: { ...rules, version: 2, appliedAt: startedAt },
  },
  unitEgress: {
    answer: 'The rules that are now in force, with entries in canonical form, and the previous rules.',
    cost: free,
    errors: {
      402: 'The rules allow more than the policy of the credential, the policy of the credential that the unit runs for, or the team. `details` has `asked` and `allowed`: send narrower rules, or ask an owner or admin of the team.',
      409: unitBusy,
      502: 'The rules are stored, but the host has not applied them yet. The service tries again by itself: read them until `appliedAt` is set.',
    },
    request: { mode: 'listed', allow: ['preset:npm', 'api.github.com', 'github.com:22'], siblings: 'stack' },
    response: { ...rules, version: 2, appliedAt: startedAt, previous: openEgress },
  },
  unitEgressCheck: {
    answer: 'The decision of the rules. For a refusal, `reason` says which entry would allow it.',
    cost: free,
    request: { host: 'registry.npmjs.org', port: 443 },
    response: {
      decision: 'allowed',
      rule: 'registry.npmjs.org',
      reason: 'The entry registry.npmjs.org allows it.',
    },
  },
}
