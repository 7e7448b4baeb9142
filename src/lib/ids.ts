// Ids are a prefix that says what they name and a UUIDv7 without dashes: sortable by creation, random
// enough that knowing one teaches nothing about another (design 5).

import { uuidv7obj } from 'uuidv7'

/** The prefix of each kind of id. A closed set: an id's kind can be read off it. */
const idPrefixes = {
  unit: 'unit',
  stack: 'stack',
  fork: 'fork',
  process: 'proc',
  team: 'team',
  user: 'user',
  invite: 'inv',
  credential: 'cred',
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

/** No id of this kind that is made from then on comes before it. */
export function firstIdSince(kind: IdKind, at: Date): string {
  return `${idPrefixes[kind]}_${Math.max(0, at.getTime()).toString(16).padStart(12, '0')}${'0'.repeat(20)}`
}

/** Whether a text has the form of an id of this kind; what has not, names nothing and reaches no query. */
export function isId(kind: IdKind, text: string): boolean {
  const [prefix, hex, ...rest] = text.split('_')
  return prefix === idPrefixes[kind] && rest.length === 0 && /^[0-9a-f]{32}$/.test(hex ?? '')
}
