// Secrets that a unit uses and does not hold: it has the placeholder, and the egress process puts the value into
// requests to the hosts of the secret (decisions/brokered-secrets.md). Pure.

import { canonicalHostName } from './entry.ts'
import type { SecretRequests } from './secret-requests.ts'

/** `hosts`: exact names, in the form in which names are compared (entry.ts). */
export type BrokeredSecret = {
  name: string
  placeholder: string
  value: string
  hosts: string[]
} & SecretRequests

export const brokeredLimits = {
  secrets: 64,
  hosts: 32,
  paths: 64,
  pathLength: 512,
  nameLength: 256,
  /** A short placeholder could be a part of a request that means something else. */
  placeholderLength: { min: 16, max: 256 },
  valueLength: 8192,
} as const

/** Header values are visible ASCII and blanks within: no line break may begin another header (RFC 9110 5.5). */
export function isBrokeredValue(value: string): boolean {
  return value.length <= brokeredLimits.valueLength && /^[!-~](?:[ -~]*[!-~])?$/.test(value)
}

/** It must be one word of a header value, and of the user name or password of Basic. */
export function isPlaceholder(text: string): boolean {
  const { min, max } = brokeredLimits.placeholderLength
  return text.length >= min && text.length <= max && /^[A-Za-z0-9_-]+$/.test(text)
}

export function isBrokeredHost(host: string): boolean {
  return canonicalHostName(host) === host
}
