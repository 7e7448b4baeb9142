// Every setting of Berth: its environment variable, default and meaning (docs/settings.md lists them).
// The only reader of process.env.

import { resolve } from 'node:path'
import { isAddressRange } from './lib/address-ranges.ts'
import { durationMs } from './lib/duration.ts'
import { emailPattern } from './lib/email.ts'

export type Address = { host: string; port: number }

/** An authority that issues certificates by itself (RFC 8555). */
export type AcmeSettings = {
  directory: string
  email: string | null
  /** Whom to trust in its place, in PEM. */
  caFile: string | null
  /** A program that sets records of DNS: with it there is one certificate for all names below the domain. */
  dnsHook: string | null
}

/** The account that people pay to. */
export type StripeSettings = {
  secretKey: string
  /** What its webhooks are signed with. */
  webhookSecret: string
  url: string
}

/** This service at a provider that people sign in with. */
export type ProviderClient = {
  clientId: string
  clientSecret: string
  /** Where the provider is; GitHub's API has an address of its own. */
  url: string
  apiUrl: string
}

export type Config = {
  dataDir: string
  /** Images are read-only and shared; several instances may keep them in one place. */
  imagesDir: string
  /** In milliseconds; null: never. */
  images: {
    /** How often Debian is asked whether built-in images are out of date. */
    updatesEveryMs: number | null
    /** How long an image stays that no unit is made of and nobody asks for. */
    keepMs: number | null
  }
  apiAddress: Address
  gatewayHttp: Address
  gatewayTls: Address
  gatewayMysql: Address
  /** Where the server and the gateway show their operator how they are. */
  metrics: Address
  gatewayMetrics: Address
  /** Of these each public TCP endpoint has one to itself, for clients that send no name. Both ends belong to it. */
  gatewayPorts: { first: number; last: number } | null
  /** A certificate of the operator's own for the domain and all names right below it, in PEM. */
  tlsFiles: { cert: string; key: string } | null
  acme: AcmeSettings | null
  /** In lower case. */
  domain: string
  /** What units' URLs begin and end with, where a proxy or another port stands in front of the gateway. */
  gatewayPublicUrl: string | null
  /** The ports TCP endpoints are reached at from outside, where they are others than the gateway's own. */
  gatewayPublicTls: number | null
  gatewayPublicMysql: number | null
  publicUrl: string
  /** Addresses and ranges of proxies whose word on who asks is taken. */
  trustedProxies: string[]
  /** Names of the API beside the public URL's. */
  apiHosts: string[]
  isolation: 'auto' | 'gvisor' | 'runc'
  /** The program that saves memory of runc machines, in place of those that are tried. */
  criu: string | null
  databaseUrl: string | null
  sleepDefault: string
  sleepMax: string
  /** How long an idle unit stands still before it is stopped; null: until memory runs short. */
  frozenForMs: number | null
  /** Memory of the host that machines leave free. */
  memoryReserveMb: number
  logLevel: string
  poolGb: number | null
  /** Creates are refused once the file system under the pool has less than this free. */
  reserveGb: number
  /** How long machines and disks are kept that the database knows nothing of; null: until they are removed by hand. */
  asideKeptMs: number | null
  /** The id of the instance that may begin on a database which has never met it, though it has machines. */
  acceptDatabase: string | null
  /** Whether the pool's file has its space of the host at once. */
  poolSpace: 'allocated' | 'sparse'
  /** Of the pool: what the units of one team may fill together. */
  teamDiskPercent: number
  registryMirrors: Record<string, string>
  registryAuthFile: string | null
  /** An HTTP proxy that pulls go through, for hosts without a way out of their own. */
  registryProxy: Address | null
  /** Trouble on request (lib/failpoints.ts), for tests alone. */
  failpoints: boolean
  rates: { requests: number; creations: number; execs: number }
  /** Of one team, under way at the same time. */
  commandsAtOnce: number
  /** How long calls stay in the audit log; 0: for ever. */
  auditDays: number
  /** Without a server mails are written into a folder. */
  mail: { smtpUrl: string | null; from: string }
  /** Who answers questions; null: the first account that is an admin's. */
  supportEmail: string | null
  signIn: { github: ProviderClient | null; google: ProviderClient | null }
  freeCreditsCents: number
  /** Without them nobody can buy credits. */
  payments: StripeSettings | null
}

type Env = Record<string, string | undefined>

/** Reads the settings; throws a sentence that names the variable when one is wrong. */
export function loadConfig(env: Env = process.env): Config {
  const dataDir = resolve(env['BERTH_DATA_DIR'] ?? '/var/lib/berth')
  const apiAddress = address(env, 'BERTH_API_ADDRESS', '127.0.0.1:7070')
  const gatewayHttp = address(env, 'BERTH_GATEWAY_HTTP', '127.0.0.1:7080')
  const gatewayTls = address(env, 'BERTH_GATEWAY_TLS', '127.0.0.1:7443')
  const gatewayMysql = address(env, 'BERTH_GATEWAY_MYSQL', '127.0.0.1:7306')
  const metrics = address(env, 'BERTH_METRICS', '127.0.0.1:7071')
  const gatewayMetrics = address(env, 'BERTH_GATEWAY_METRICS', '127.0.0.1:7072')
  const domain = domainName(env, 'BERTH_DOMAIN', 'berth.localhost')
  return {
    dataDir,
    imagesDir: resolve(env['BERTH_IMAGES_DIR'] ?? `${dataDir}/images`),
    images: {
      updatesEveryMs: duration(env, 'BERTH_IMAGE_UPDATES', '1d'),
      keepMs: duration(env, 'BERTH_IMAGE_KEEP', '30d'),
    },
    apiAddress,
    gatewayHttp,
    gatewayTls,
    gatewayMysql,
    metrics,
    gatewayMetrics,
    gatewayPorts: portRange(env, 'BERTH_GATEWAY_PORTS', [
      apiAddress,
      gatewayHttp,
      gatewayTls,
      gatewayMysql,
      metrics,
      gatewayMetrics,
    ]),
    tlsFiles: tlsFiles(env),
    acme: acme(env),
    domain,
    gatewayPublicUrl: urlBelow(env, 'BERTH_GATEWAY_PUBLIC_URL', domain),
    gatewayPublicTls: port(env, 'BERTH_GATEWAY_PUBLIC_TLS'),
    gatewayPublicMysql: port(env, 'BERTH_GATEWAY_PUBLIC_MYSQL'),
    publicUrl: env['BERTH_PUBLIC_URL'] ?? httpUrl(apiAddress),
    trustedProxies: addressRanges(env, 'BERTH_TRUSTED_PROXIES'),
    apiHosts: hostNames(env, 'BERTH_API_HOSTS'),
    isolation: oneOf(env, 'BERTH_ISOLATION', ['auto', 'gvisor', 'runc']),
    criu: env['BERTH_CRIU'] === undefined ? null : resolve(env['BERTH_CRIU']),
    databaseUrl: env['DATABASE_URL'] ?? null,
    sleepDefault: sleepWindow(env, 'BERTH_SLEEP_DEFAULT', '30m'),
    sleepMax: sleepWindow(env, 'BERTH_SLEEP_MAX', 'never'),
    frozenForMs: duration(env, 'BERTH_FROZEN_FOR', '10m'),
    memoryReserveMb: wholeNumber(env, 'BERTH_MEMORY_RESERVE_MB', 512),
    logLevel: oneOf(env, 'BERTH_LOG_LEVEL', ['info', 'trace', 'debug', 'warn', 'error', 'silent']),
    poolGb: env['BERTH_POOL_GB'] === undefined ? null : wholeNumber(env, 'BERTH_POOL_GB', 0),
    reserveGb: wholeNumber(env, 'BERTH_RESERVE_GB', 2),
    asideKeptMs: duration(env, 'BERTH_KEEP_ASIDE', '7d'),
    acceptDatabase: env['BERTH_ACCEPT_DATABASE'] ?? null,
    poolSpace: oneOf(env, 'BERTH_POOL_SPACE', ['allocated', 'sparse']),
    teamDiskPercent: percent(env, 'BERTH_TEAM_DISK_PERCENT', 50),
    registryMirrors: mirrors(env['BERTH_REGISTRY_MIRRORS'] ?? ''),
    registryAuthFile: env['BERTH_REGISTRY_AUTH_FILE'] ?? null,
    registryProxy: env['BERTH_REGISTRY_PROXY'] ? address(env, 'BERTH_REGISTRY_PROXY', '') : null,
    failpoints: oneOf(env, 'BERTH_FAILPOINTS', ['off', 'on']) === 'on',
    rates: {
      requests: wholeNumber(env, 'BERTH_RATE_REQUESTS', 300),
      creations: wholeNumber(env, 'BERTH_RATE_CREATIONS', 30),
      execs: wholeNumber(env, 'BERTH_RATE_EXECS', 120),
    },
    commandsAtOnce: wholeNumber(env, 'BERTH_TEAM_COMMANDS', 64),
    auditDays: wholeNumber(env, 'BERTH_AUDIT_DAYS', 90),
    mail: {
      smtpUrl: urlOf(env, 'BERTH_SMTP_URL', ['smtp:', 'smtps:']),
      from: emailAddress(env, 'BERTH_MAIL_FROM') ?? `berth@${domain}`,
    },
    supportEmail: emailAddress(env, 'BERTH_SUPPORT_EMAIL'),
    signIn: signInClients(env),
    freeCreditsCents: wholeNumber(env, 'BERTH_FREE_CREDITS_CENTS', 500),
    payments: stripe(env),
  }
}

/** For roles that mail nothing, sign nobody in and take no money. */
export function withoutSecrets(config: Config): Config {
  return {
    ...config,
    mail: { ...config.mail, smtpUrl: null },
    signIn: { github: null, google: null },
    payments: null,
  }
}

function signInClients(env: Env): Config['signIn'] {
  const githubUrl = urlOf(env, 'BERTH_GITHUB_URL', ['https:', 'http:']) ?? 'https://github.com'
  const githubApi = urlOf(env, 'BERTH_GITHUB_API_URL', ['https:', 'http:']) ?? 'https://api.github.com'
  const googleUrl = urlOf(env, 'BERTH_GOOGLE_URL', ['https:', 'http:']) ?? 'https://accounts.google.com'
  return {
    github: providerClient(env, ['BERTH_GITHUB_CLIENT_ID', 'BERTH_GITHUB_CLIENT_SECRET'], {
      url: githubUrl,
      apiUrl: githubApi,
    }),
    google: providerClient(env, ['BERTH_GOOGLE_CLIENT_ID', 'BERTH_GOOGLE_CLIENT_SECRET'], {
      url: googleUrl,
      apiUrl: googleUrl,
    }),
  }
}

function providerClient(
  env: Env,
  [idName, secretName]: readonly [string, string],
  urls: { url: string; apiUrl: string },
): ProviderClient | null {
  const [clientId, clientSecret] = [env[idName], env[secretName]]
  if (!clientId && !clientSecret) return null
  if (clientId && clientSecret) return { clientId, clientSecret, ...urls }
  throw new Error(`${idName} and ${secretName} must be set together`)
}

function stripe(env: Env): StripeSettings | null {
  const url = urlOf(env, 'BERTH_STRIPE_URL', ['https:', 'http:']) ?? 'https://api.stripe.com'
  const secretKey = prefixed(env, 'BERTH_STRIPE_SECRET_KEY', ['sk_', 'rk_'])
  const webhookSecret = prefixed(env, 'BERTH_STRIPE_WEBHOOK_SECRET', ['whsec_'])
  if (secretKey === null && webhookSecret === null) return null
  if (secretKey !== null && webhookSecret !== null) return { secretKey, webhookSecret, url }
  throw new Error('BERTH_STRIPE_SECRET_KEY and BERTH_STRIPE_WEBHOOK_SECRET must be set together')
}

/** A secret, so the refusal does not repeat it. */
function prefixed(env: Env, name: string, prefixes: readonly string[]): string | null {
  const text = env[name]
  if (text === undefined) return null
  if (/^\w+$/.test(text) && prefixes.some((prefix) => text.startsWith(prefix))) return text
  throw new Error(`${name} must begin with ${prefixes.join(' or ')}`)
}

function tlsFiles(env: Env): Config['tlsFiles'] {
  const [cert, key] = [env['BERTH_TLS_CERT'], env['BERTH_TLS_KEY']]
  if (cert === undefined && key === undefined) return null
  if (cert !== undefined && key !== undefined) return { cert: resolve(cert), key: resolve(key) }
  throw new Error('BERTH_TLS_CERT and BERTH_TLS_KEY must be set together')
}

function acme(env: Env): AcmeSettings | null {
  const path = (name: string) => (env[name] === undefined ? null : resolve(env[name]))
  const [directory, email] = [env['BERTH_ACME_DIRECTORY'], env['BERTH_ACME_EMAIL'] ?? null]
  const more = ['BERTH_ACME_EMAIL', 'BERTH_ACME_CA_FILE', 'BERTH_ACME_DNS_HOOK'].filter((name) => env[name])
  if (directory === undefined) {
    if (more.length > 0) throw new Error(`${more[0]} means nothing without BERTH_ACME_DIRECTORY`)
    return null
  }
  if (tlsFiles(env) !== null) {
    throw new Error('BERTH_ACME_DIRECTORY and BERTH_TLS_CERT exclude each other: unset one of them')
  }
  if (!URL.canParse(directory) || new URL(directory).protocol !== 'https:') {
    throw new Error(`BERTH_ACME_DIRECTORY must be an https URL, not "${directory}"`)
  }
  if (email !== null && !/^[^\s@,?]+@[^\s@,?]+$/.test(email)) {
    throw new Error(`BERTH_ACME_EMAIL must be an address, not "${email}"`)
  }
  return { directory, email, caFile: path('BERTH_ACME_CA_FILE'), dnsHook: path('BERTH_ACME_DNS_HOOK') }
}

export function httpUrl({ host, port }: Address): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

function address(env: Env, name: string, fallback: string): Address {
  const text = env[name] ?? fallback
  const match = /^(\[[0-9a-f:]+\]|[^:]+):(\d{1,5})$/.exec(text)
  if (!match || Number(match[2]) > 65535) throw new Error(`${name} must be host:port, not "${text}"`)
  return { host: (match[1] ?? '').replace(/^\[|\]$/g, ''), port: Number(match[2]) }
}

function domainName(env: Env, name: string, fallback: string): string {
  const text = (env[name] ?? fallback).toLowerCase()
  if (/^(?!.{190})[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/.test(text)) return text
  throw new Error(`${name} must be a domain name such as apps.example.com, not "${text}"`)
}

/** Scheme, domain and port, and nothing behind them. */
function urlBelow(env: Env, name: string, domain: string): string | null {
  const text = env[name]
  if (text === undefined) return null
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && ['http:', 'https:'].includes(url.protocol) && url.href === `${url.origin}/`
  if (isPlain && url.hostname === domain) return url.origin
  throw new Error(
    `${name} must be http or https, BERTH_DOMAIN and a port, as "https://${domain}:443", not "${text}"`,
  )
}

/** Such a URL may hold a password, so the refusal does not repeat it. */
function urlOf(env: Env, name: string, protocols: readonly string[]): string | null {
  const text = env[name]
  if (text === undefined) return null
  const url = URL.canParse(text) ? new URL(text) : null
  if (url && protocols.includes(url.protocol) && url.hostname !== '') return text.replace(/\/$/, '')
  throw new Error(`${name} must be a URL that begins with ${protocols.map((one) => `${one}//`).join(' or ')}`)
}

function emailAddress(env: Env, name: string): string | null {
  const text = env[name]
  if (text === undefined || emailPattern.test(text)) return text ?? null
  throw new Error(`${name} must be an email address, not "${text}"`)
}

function hostNames(env: Env, name: string): string[] {
  const text = env[name]
  if (text === undefined || text === '') return []
  const names = text.split(',').map((each) => each.trim().toLowerCase())
  if (names.every((each) => /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(each))) return names
  throw new Error(`${name} must be names without ports, separated by commas, not "${text}".`)
}

function addressRanges(env: Env, name: string): string[] {
  const ranges = (env[name] ?? '')
    .split(',')
    .map((range) => range.trim())
    .filter((range) => range !== '')
  const wrong = ranges.find((range) => !isAddressRange(range))
  if (wrong === undefined) return ranges
  throw new Error(`${name} must be addresses or ranges, as "10.0.0.5,fd00::/8", not "${wrong}"`)
}

function port(env: Env, name: string): number | null {
  const text = env[name]
  if (text === undefined) return null
  const number = Number(text)
  if (/^\d{1,5}$/.test(text) && number >= 1 && number <= 65535) return number
  throw new Error(`${name} must be a port, not "${text}"`)
}

/** Those Berth listens on besides are none of an endpoint's. */
function portRange(env: Env, name: string, others: Address[]): Config['gatewayPorts'] {
  const text = env[name]
  if (text === undefined) return null
  const [, first, last] = (/^(\d{4,5})-(\d{4,5})$/.exec(text) ?? []).map(Number)
  const isRange = first && last && first >= 1024 && first <= last && last <= 65535
  const own = isRange && others.find(({ port }) => port >= first && port <= last)
  if (own) throw new Error(`${name} must leave out ${own.port}, which Berth listens on already`)
  if (isRange) return { first, last }
  throw new Error(`${name} must be two ports from 1024 to 65535, as "17000-17999", not "${text}"`)
}

function oneOf<const T extends string>(env: Env, name: string, allowed: readonly [T, ...T[]]): T {
  const text = env[name] ?? allowed[0]
  const found = allowed.find((value) => value === text)
  if (found === undefined) throw new Error(`${name} must be one of ${allowed.join(', ')}, not "${text}"`)
  return found
}

function wholeNumber(env: Env, name: string, fallback: number): number {
  const text = env[name] ?? String(fallback)
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${name} must be a whole number, not "${text}"`)
  return Number(text)
}

function percent(env: Env, name: string, fallback: number): number {
  const value = wholeNumber(env, name, fallback)
  if (value >= 1 && value <= 100) return value
  throw new Error(`${name} must be a whole number from 1 to 100, not "${value}"`)
}

function sleepWindow(env: Env, name: string, fallback: string): string {
  const text = env[name] ?? fallback
  if (!/^(?:never|[1-9][0-9]{0,4}[mhd])$/.test(text)) {
    throw new Error(`${name} must be "never" or a number followed by m, h or d, not "${text}"`)
  }
  return text
}

/** Null for `never`: what roles are told is JSON, which has no infinity. */
function duration(env: Env, name: string, fallback: string): number | null {
  const text = env[name] ?? fallback
  const ms = durationMs(text)
  if (ms === null)
    throw new Error(`${name} must be "never" or a number followed by s, m, h or d, not "${text}"`)
  return Number.isFinite(ms) ? ms : null
}

/** `docker.io=127.0.0.1:5000,quay.io=mirror.lan` → registry host → where it is really fetched. */
function mirrors(text: string): Record<string, string> {
  const pairs = text.split(',').filter((part) => part.trim() !== '')
  return Object.fromEntries(
    pairs.map((part) => {
      const [from, to] = part.split('=').map((side) => side.trim())
      if (!from || !to) throw new Error(`BERTH_REGISTRY_MIRRORS must be registry=mirror[,…], not "${part}"`)
      return [from, to]
    }),
  )
}
