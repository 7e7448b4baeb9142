// A policy in words, and as the text of the fields that a person edits. Only what a person changed is sent.

import type { Contract } from '@berth/sdk'
import {
  type Egress,
  type EgressTexts,
  egressOf,
  egressText,
  egressTextsOf,
  isOpen,
  linesOf,
} from '../egress/egress-text.ts'
import { euros } from '../../../../src/lib/money.ts'

export type Policy = {
  [Field in Exclude<keyof Contract.Policy, 'egress'>]-?: Exclude<Contract.Policy[Field], undefined>
} & { egress: Egress }
export type PolicyField = keyof Policy
export const sizes = ['nano', 'small', 'medium', 'large'] as const
export type Size = (typeof sizes)[number]

export const policyLabels = {
  maxConcurrentUnits: 'Units at once',
  dailySpendCapCents: 'Euros a day',
  allowedSizes: 'Sizes',
  allowedRegistries: 'Registries of images',
  maxSleep: 'Longest time a unit may idle before it sleeps',
  expiresAt: 'Ends',
  egress: 'What its units may reach',
  allowedSecrets: "The team's secrets that its units may use",
  allowNested: 'Containers in its units',
  rates: 'Calls a minute',
} as const satisfies Record<PolicyField, string>

/** What a new key may do unless a person says otherwise: little. */
export const smallPolicy: Policy = {
  maxConcurrentUnits: 2,
  dailySpendCapCents: 200,
  allowedSizes: ['nano', 'small'],
  allowedRegistries: ['docker.io', 'ghcr.io', 'quay.io'],
  maxSleep: 'never',
  expiresAt: null,
  egress: { mode: 'open', allow: [], siblings: 'team' },
  allowedSecrets: [],
  allowNested: false,
  rates: {},
}

export type PolicyTexts = {
  maxConcurrentUnits: string
  /** In euros. */
  dailySpendCapCents: string
  allowedSizes: Size[]
  /** One a line. */
  allowedRegistries: string
  maxSleep: string
  /** In the time of this browser; empty for never. */
  expiresAt: string
  egress: EgressTexts
  /** One a line. */
  allowedSecrets: string
  allowNested: boolean
  /** One a line: `creations 300`. */
  rates: string
}

export function textsOf(policy: Policy): PolicyTexts {
  return {
    maxConcurrentUnits: String(policy.maxConcurrentUnits),
    dailySpendCapCents: (policy.dailySpendCapCents / 100).toFixed(2),
    allowedSizes: sizes.filter((size) => policy.allowedSizes.includes(size)),
    allowedRegistries: policy.allowedRegistries.join('\n'),
    maxSleep: policy.maxSleep,
    expiresAt: policy.expiresAt === null ? '' : localTime(new Date(policy.expiresAt)),
    egress: egressTextsOf(policy.egress),
    allowedSecrets: policy.allowedSecrets.join('\n'),
    allowNested: policy.allowNested,
    rates: ratesText(policy.rates, '\n'),
  }
}

export type Faults = Partial<Record<PolicyField, string>>
export type Read = { policy: Policy; faults: Faults }

/** Returns the policy that the fields say. A field with a fault keeps its value of `base`, as does one that was not changed. */
export function policyOf(texts: PolicyTexts, base: Policy): Read {
  const before = textsOf(base)
  const faults: Faults = {}
  const policy: Policy = { ...base }
  if (texts.maxConcurrentUnits !== before.maxConcurrentUnits) {
    if (/^\d{1,9}$/.test(texts.maxConcurrentUnits.trim()))
      policy.maxConcurrentUnits = Number(texts.maxConcurrentUnits)
    else faults.maxConcurrentUnits = 'A whole number, such as 5.'
  }
  if (texts.dailySpendCapCents !== before.dailySpendCapCents) {
    const cents = centsOf(texts.dailySpendCapCents)
    if (cents === null) faults.dailySpendCapCents = 'An amount in euros, such as 10 or 2.50.'
    else policy.dailySpendCapCents = cents
  }
  policy.allowedSizes = texts.allowedSizes
  policy.allowedRegistries = linesOf(texts.allowedRegistries)
  policy.maxSleep = texts.maxSleep.trim()
  policy.egress = egressOf(texts.egress)
  policy.allowedSecrets = linesOf(texts.allowedSecrets)
  policy.allowNested = texts.allowNested
  const rates = ratesOf(texts.rates)
  if (rates === null) faults.rates = 'Lines such as “creations 300”, of requests, creations and execs.'
  else policy.rates = rates
  if (texts.expiresAt !== before.expiresAt) {
    const at = new Date(texts.expiresAt)
    if (texts.expiresAt === '') policy.expiresAt = null
    else if (Number.isNaN(at.getTime())) faults.expiresAt = 'A day and a time, or empty.'
    else policy.expiresAt = at.toISOString()
  }
  return { policy, faults }
}

/** Of `2.50` or `2,5`; null for what is no amount. */
export function centsOf(text: string): number | null {
  const [, euros, cents = ''] = /^\s*(\d{1,9})(?:[.,](\d{1,2}))?\s*$/.exec(text) ?? []
  return euros === undefined ? null : Number(euros) * 100 + Number(cents.padEnd(2, '0'))
}

/** The fields in which two policies differ. */
export function differences(one: Policy, other: Policy): PolicyField[] {
  const fields = Object.keys(policyLabels) as PolicyField[]
  return fields.filter((field) => JSON.stringify(one[field]) !== JSON.stringify(other[field]))
}

export function partOf(policy: Policy, fields: readonly PolicyField[]): Contract.Policy {
  return Object.fromEntries(fields.map((field) => [field, policy[field]]))
}

/** `5 units, €10.00 a day, up to medium, 3 registries`. */
export function shortSentence(policy: Policy): string {
  const parts = [
    units(policy.maxConcurrentUnits),
    `${euros(policy.dailySpendCapCents)} a day`,
    sizesText(policy.allowedSizes),
    registriesText(policy.allowedRegistries, 1),
  ]
  if (policy.maxSleep !== 'never') parts.push(`sleeps after ${policy.maxSleep} at most`)
  if (!isOpen(policy.egress)) parts.push(`reaches ${egressText(policy.egress)}`)
  if (policy.allowedSecrets.length > 0) parts.push(`uses ${secretsText(policy.allowedSecrets)}`)
  if (policy.allowNested) parts.push('containers in units')
  if (Object.keys(policy.rates).length > 0) parts.push(`${ratesText(policy.rates)} a minute`)
  if (policy.expiresAt !== null) parts.push(`until ${dayOf(policy.expiresAt)}`)
  return parts.join(', ')
}

export function sentence(policy: Policy): string {
  const idle =
    policy.maxSleep === 'never' ? 'may idle for as long as it likes' : `idles for ${policy.maxSleep} at most`
  const until = policy.expiresAt === null ? 'until you revoke it' : `until ${dayOf(policy.expiresAt)}`
  return [
    `May run ${units(policy.maxConcurrentUnits)} at once and spend ${euros(policy.dailySpendCapCents)} a day, ${until}.`,
    `Units are ${sizesText(policy.allowedSizes)}, with images from ${registriesText(policy.allowedRegistries, 3)}.`,
    `Each unit ${idle}, reaches ${egressText(policy.egress)}, and uses ${secretsText(policy.allowedSecrets)}.`,
    ...(policy.allowNested ? ['Containers may run in units.'] : []),
    ...(Object.keys(policy.rates).length > 0 ? [`At most ${ratesText(policy.rates)} a minute.`] : []),
  ].join(' ')
}

/** What one field says, to compare two of them. */
export function fieldText(policy: Policy, field: PolicyField): string {
  switch (field) {
    case 'maxConcurrentUnits':
      return units(policy.maxConcurrentUnits)
    case 'dailySpendCapCents':
      return `${euros(policy.dailySpendCapCents)} a day`
    case 'allowedSizes':
      return sizesText(policy.allowedSizes)
    case 'allowedRegistries':
      return policy.allowedRegistries.join(', ') || 'none'
    case 'maxSleep':
      return policy.maxSleep
    case 'egress':
      return egressText(policy.egress)
    case 'allowedSecrets':
      return secretsText(policy.allowedSecrets)
    case 'allowNested':
      return policy.allowNested ? 'allowed' : 'not allowed'
    case 'rates':
      return ratesText(policy.rates) || 'those of the service'
    case 'expiresAt':
      return policy.expiresAt === null ? 'never' : dayOf(policy.expiresAt)
  }
}

const ratesText = (rates: Policy['rates'], between = ', ') =>
  Object.entries(rates)
    .map(([name, calls]) => `${name} ${calls}`)
    .join(between)

/** Null for text that says no rates. */
function ratesOf(text: string): Policy['rates'] | null {
  const read = linesOf(text).map((line) => /^(requests|creations|execs) +(\d{1,7})$/.exec(line))
  if (read.includes(null)) return null
  return Object.fromEntries(read.map((parts) => [parts?.[1], Number(parts?.[2])]))
}

const units = (count: number) => `${count} ${count === 1 ? 'unit' : 'units'}`

function sizesText(allowed: readonly Size[]): string {
  if (allowed.length === 0) return 'no size'
  if (allowed.length === sizes.length) return 'any size'
  const isFromSmallest = sizes.slice(0, allowed.length).every((size) => allowed.includes(size))
  if (allowed.length === 1) return `only ${allowed[0]}`
  if (!isFromSmallest) return allowed.join(', ')
  return `up to ${sizes[allowed.length - 1]}`
}

function registriesText(registries: readonly string[], named: number): string {
  if (registries.length === 0) return 'no registry'
  if (registries.length <= named) return registries.join(', ')
  if (named === 1) return `${registries.length} registries`
  return `${registries.slice(0, named).join(', ')} and ${registries.length - named} more`
}

function secretsText(names: readonly string[]): string {
  if (names.length === 0) return 'no secret of the team'
  return names.includes('*') ? 'every secret of the team' : `the secrets ${names.join(', ')}`
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const dayOf = (at: string) => day.format(new Date(at))

function localTime(at: Date): string {
  const pad = (value: number) => String(value).padStart(2, '0')
  const date = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`
  return `${date}T${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`
}
