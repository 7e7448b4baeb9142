// Parses settings from environment variables as numbers, addresses, names or durations. Each function throws a
// sentence that names the setting and the allowed values.

import { isAddressRange } from './address-ranges.ts'
import { durationMs } from './duration.ts'
import { emailPattern } from './email.ts'

export type Env = Record<string, string | undefined>

export type Address = { host: string; port: number }

export function address(env: Env, name: string, fallback: string): Address {
  const text = env[name] ?? fallback
  const match = /^(\[[0-9a-f:]+\]|[^:]+):(\d{1,5})$/.exec(text)
  if (!match || Number(match[2]) > 65535) throw new Error(`${name} must be host:port, not "${text}"`)
  return { host: (match[1] ?? '').replace(/^\[|\]$/g, ''), port: Number(match[2]) }
}

/** As it is stored and shown: `10.0.0.2:7075`, `[fd00::2]:7075`. */
export function addressText({ host, port }: Address): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Of text that `addressText` wrote. */
export function parseAddress(text: string): Address {
  return address({ ADDRESS: text }, 'ADDRESS', '')
}

export function domainName(env: Env, name: string, fallback: string): string {
  const text = (env[name] ?? fallback).toLowerCase()
  if (/^(?!.{190})[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/.test(text)) return text
  throw new Error(`${name} must be a domain name such as apps.example.com, not "${text}"`)
}

/** Scheme, domain and port, without a path. */
export function urlBelow(env: Env, name: string, domain: string): string | null {
  const text = env[name]
  if (text === undefined) return null
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && ['http:', 'https:'].includes(url.protocol) && url.href === `${url.origin}/`
  if (isPlain && url.hostname === domain) return url.origin
  throw new Error(
    `${name} must be http or https, BERTH_DOMAIN and a port, as "https://${domain}:443", not "${text}"`,
  )
}

/** Scheme, host and port, optionally with a final slash, which is removed. Null if it is not set. */
export function originOf(env: Env, name: string): string | null {
  const text = env[name]
  if (text === undefined) return null
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && ['http:', 'https:'].includes(url.protocol) && url.href === `${url.origin}/`
  if (isPlain) return url.origin
  throw new Error(
    `${name} must be http or https, a host and maybe a port, as "https://berth.example.com", with no path behind it, not "${text}"`,
  )
}

/** The URL may contain a password, so the error does not repeat it. */
export function urlOf(env: Env, name: string, protocols: readonly string[]): string | null {
  const text = env[name]
  if (text === undefined) return null
  const url = URL.canParse(text) ? new URL(text) : null
  if (url && protocols.includes(url.protocol) && url.hostname !== '') return text.replace(/\/$/, '')
  throw new Error(`${name} must be a URL that begins with ${protocols.map((one) => `${one}//`).join(' or ')}`)
}

export function emailAddress(env: Env, name: string): string | null {
  const text = env[name]
  if (text === undefined || emailPattern.test(text)) return text ?? null
  throw new Error(`${name} must be an email address, not "${text}"`)
}

export function hostNames(env: Env, name: string): string[] {
  const text = env[name]
  if (text === undefined || text === '') return []
  const names = text.split(',').map((each) => each.trim().toLowerCase())
  if (names.every((each) => /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(each))) return names
  throw new Error(`${name} must be names without ports, separated by commas, not "${text}".`)
}

export function addressRanges(env: Env, name: string): string[] {
  const ranges = (env[name] ?? '')
    .split(',')
    .map((range) => range.trim())
    .filter((range) => range !== '')
  const wrong = ranges.find((range) => !isAddressRange(range))
  if (wrong === undefined) return ranges
  throw new Error(`${name} must be addresses or ranges, as "10.0.0.5,fd00::/8", not "${wrong}"`)
}

export function port(env: Env, name: string): number | null {
  const text = env[name]
  if (text === undefined) return null
  const number = Number(text)
  if (/^\d{1,5}$/.test(text) && number >= 1 && number <= 65535) return number
  throw new Error(`${name} must be a port, not "${text}"`)
}

/** Ports that Berth listens on itself cannot be in the range. */
export function portRange(env: Env, name: string, others: Address[]): { first: number; last: number } | null {
  const text = env[name]
  if (text === undefined) return null
  const [, first, last] = (/^(\d{4,5})-(\d{4,5})$/.exec(text) ?? []).map(Number)
  const isRange = first && last && first >= 1024 && first <= last && last <= 65535
  const own = isRange && others.find(({ port }) => port >= first && port <= last)
  if (own) throw new Error(`${name} must leave out ${own.port}, which Berth listens on already`)
  if (isRange) return { first, last }
  throw new Error(`${name} must be two ports from 1024 to 65535, as "17000-17999", not "${text}"`)
}

export function oneOf<const T extends string>(env: Env, name: string, allowed: readonly [T, ...T[]]): T {
  const text = env[name] ?? allowed[0]
  const found = allowed.find((value) => value === text)
  if (found === undefined) throw new Error(`${name} must be one of ${allowed.join(', ')}, not "${text}"`)
  return found
}

export function wholeNumber(env: Env, name: string, fallback: number): number {
  const text = env[name] ?? String(fallback)
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${name} must be a whole number, not "${text}"`)
  return Number(text)
}

export function percent(env: Env, name: string, fallback: number): number {
  const value = wholeNumber(env, name, fallback)
  if (value >= 1 && value <= 100) return value
  throw new Error(`${name} must be a whole number from 1 to 100, not "${value}"`)
}

export function sleepWindow(env: Env, name: string, fallback: string): string {
  const text = env[name] ?? fallback
  if (!/^(?:never|[1-9][0-9]{0,4}[mhd])$/.test(text)) {
    throw new Error(`${name} must be "never" or a number followed by m, h or d, not "${text}"`)
  }
  return text
}

/** Null for `never`, because the settings are passed to processes as JSON, which has no infinity. */
export function duration(env: Env, name: string, fallback: string): number | null {
  const text = env[name] ?? fallback
  const ms = durationMs(text)
  if (ms === null)
    throw new Error(`${name} must be "never" or a number followed by s, m, h or d, not "${text}"`)
  return Number.isFinite(ms) ? ms : null
}

/** Parses `docker.io=127.0.0.1:5000,quay.io=mirror.lan`: registry host to mirror. */
export function mirrors(text: string): Record<string, string> {
  const pairs = text.split(',').filter((part) => part.trim() !== '')
  return Object.fromEntries(
    pairs.map((part) => {
      const [from, to] = part.split('=').map((side) => side.trim())
      if (!from || !to) throw new Error(`BERTH_REGISTRY_MIRRORS must be registry=mirror[,…], not "${part}"`)
      return [from, to]
    }),
  )
}
