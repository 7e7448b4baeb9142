// An id is a prefix for its kind and a UUIDv7 without dashes: sortable by creation, and random enough that one id
// reveals nothing about others (design 5).

import { uuidv7obj } from 'uuidv7'

/** The prefix of each kind of id. */
const idPrefixes = {
  host: 'host',
  unit: 'unit',
  stack: 'stack',
  fork: 'fork',
  process: 'proc',
  team: 'team',
  user: 'user',
  invite: 'inv',
  credential: 'cred',
  hostedEnvironment: 'hosted',
  oauthClient: 'client',
  oauthFamily: 'family',
  endpoint: 'ep',
  audit: 'audit',
  credit: 'credit',
  payment: 'pay',
  session: 'sess',
  request: 'req',
  mail: 'mail',
  ticket: 'ticket',
} as const satisfies Record<string, string>

export type IdKind = keyof typeof idPrefixes

export function newId(kind: IdKind): string {
  return `${idPrefixes[kind]}_${uuidv7obj().toHex()}`
}

/** Returns a lower bound for all ids of this kind created from then on. */
export function firstIdSince(kind: IdKind, at: Date): string {
  return `${idPrefixes[kind]}_${Math.max(0, at.getTime()).toString(16).padStart(12, '0')}${'0'.repeat(20)}`
}

/** Whether a text has the form of an id of this kind; other texts get no query. */
export function isId(kind: IdKind, text: string): boolean {
  const [prefix, hex, ...rest] = text.split('_')
  return prefix === idPrefixes[kind] && rest.length === 0 && /^[0-9a-f]{32}$/.test(hex ?? '')
}
