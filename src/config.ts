// Every setting of Berth: its environment variable, default and meaning (docs/settings.md lists them).
// The only reader of process.env.

import { resolve } from 'node:path'
import { type FleetSettings, fleetSettings, roles } from './lib/fleet-settings.ts'
import { defaultGatewayWorkers, MAX_GATEWAY_WORKERS } from './lib/gateway-workers.ts'
import {
  address,
  domainName,
  urlBelow,
  urlOf,
  emailAddress,
  hostNames,
  addressRanges,
  port,
  portRange,
  oneOf,
  originOf,
  wholeNumber,
  percent,
  sleepWindow,
  duration,
  mirrors,
  type Address,
  type Env,
} from './lib/setting-values.ts'
import {
  type AcmeSettings,
  type StripeSettings,
  type SignInClients,
  type TlsFiles,
  signInClients,
  stripe,
  tlsFiles,
  acme,
} from './lib/service-settings.ts'

export type { Address }

export type Config = FleetSettings & {
  dataDir: string
  /** Images are read-only, so several instances may share a directory. */
  imagesDir: string
  /** In milliseconds; null: never. */
  images: {
    /** How often Debian is asked whether built-in images are out of date. */
    updatesEveryMs: number | null
    /** How long an unused image stays. */
    keepMs: number | null
  }
  apiAddress: Address
  gatewayHttp: Address
  gatewayTls: Address
  gatewayMysql: Address
  /** On a host without a server of its own: where the server is, and the file with the gateway's identity. */
  serverLink: (Address & { identityFile: string }) | null
  /** The address on which the server and the gateway serve their metrics. */
  metrics: Address
  gatewayMetrics: Address
  /** How many gateway processes share the ports of visits. */
  gatewayWorkers: number
  /**
   * The ports for public TCP endpoints, one for each, for clients that send no server name. Both ends are included.
   */
  gatewayPorts: { first: number; last: number } | null
  /** The operator's certificate for the domain and all names directly below it, in PEM. */
  tlsFiles: TlsFiles | null
  acme: AcmeSettings | null
  /** In lower case. */
  domain: string
  /** The scheme and port of units' URLs, if a proxy or another port is in front of the gateway. */
  gatewayPublicUrl: string | null
  /** The port at which TCP endpoints are reached from outside, if it is not the gateway's own. */
  gatewayPublicTls: number | null
  gatewayPublicMysql: number | null
  /** An origin: pages, cookies and OAuth metadata are at the root of a host. */
  publicUrl: string
  /** Addresses and ranges of proxies whose forwarded client address is trusted. */
  trustedProxies: string[]
  /** Whether an OAuth client may be described by a document at its own URL, which the server fetches. */
  clientMetadata: boolean
  /** Hosts of allowed documents, in lower case; empty: any. */
  clientHosts: string[]
  /** Other host names of the API, besides the public URL's. */
  apiHosts: string[]
  isolation: 'auto' | 'gvisor' | 'runc'
  /** How commands get into units of class gvisor. */
  gvisorCommands: 'auto' | 'direct' | 'runsc'
  /** The runsc to try before those of the machine. */
  runsc: string | null
  /** With what a current runsc is built where the machine has only its system's; null: none is built. */
  runscBuild: Record<string, string> | null
  /** The CRIU program to use instead of those that are tried. */
  criu: string | null
  databaseUrl: string | null
  sleepDefault: string
  sleepMax: string
  /** How long an idle unit stays frozen before it hibernates; null: until memory runs short. */
  frozenForMs: number | null
  /** The host's memory that machines must leave free. */
  memoryReserveMb: number
  /** How many machines of each kind in use are made ahead. */
  readyMachines: number
  logLevel: string
  poolGb: number | null
  /** Creates are refused when the file system under the pool has less free space than this. */
  reserveGb: number
  /** How long machines and disks unknown to the database are kept; null: until they are removed by hand. */
  asideKeptMs: number | null
  /** The id of the instance that may start on a database that does not know it, although it has machines. */
  acceptDatabase: string | null
  /** Whether the pool's file allocates all of its space at once. */
  poolSpace: 'allocated' | 'sparse'
  /** How much of the pool the units of one team may use together. */
  teamDiskPercent: number
  registryMirrors: Record<string, string>
  registryAuthFile: string | null
  /** An HTTP proxy for image pulls, for a host without direct access. */
  registryProxy: Address | null
  /** Whether faults can be injected (lib/failpoints.ts), only for tests. */
  failpoints: boolean
  rates: { requests: number; creations: number; execs: number }
  /** How many times as high the rates of a credential's policy may be. */
  rateTimes: number
  /** The most commands of one team in progress at once. */
  commandsAtOnce: number
  /** How long audit rows are kept; 0: for ever. */
  auditDays: number
  /** Without an SMTP server, mails are written into a folder. */
  mail: { smtpUrl: string | null; from: string }
  /** The address for support messages; null: the first admin's. */
  supportEmail: string | null
  signIn: SignInClients
  /** Where the vendor of hosted agents is asked for work; null: where it is for all. */
  claudeUrl: string | null
  freeCreditsCents: number
  /** Null: no credits can be bought. */
  payments: StripeSettings | null
}

/** The operator's settings that a build of Go programs heeds: proxies, their certificates, and Go's own. */
export function loadBuildSettings(env: Env = process.env): Record<string, string> {
  const heeded =
    /^(HOME|GOPROXY|GOSUMDB|GONOSUMDB|GOINSECURE|GOPRIVATE|GOENV|SSL_CERT_.*|NODE_EXTRA_CA_CERTS|.*_proxy|.*_PROXY)$/
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value !== undefined && heeded.test(name) ? [[name, value]] : [],
    ),
  )
}

/** Reads the settings; throws a sentence that names the variable if one is invalid. */
export function loadConfig(env: Env = process.env): Config {
  const dataDir = resolve(env['BERTH_DATA_DIR'] ?? '/var/lib/berth')
  const apiAddress = address(env, 'BERTH_API_ADDRESS', '127.0.0.1:7070')
  const gatewayHttp = address(env, 'BERTH_GATEWAY_HTTP', '127.0.0.1:7080')
  const gatewayTls = address(env, 'BERTH_GATEWAY_TLS', '127.0.0.1:7443')
  const gatewayMysql = address(env, 'BERTH_GATEWAY_MYSQL', '127.0.0.1:7306')
  const metrics = address(env, 'BERTH_METRICS', '127.0.0.1:7071')
  const gatewayMetrics = address(env, 'BERTH_GATEWAY_METRICS', '127.0.0.1:7072')
  const domain = domainName(env, 'BERTH_DOMAIN', 'berth.localhost')
  const role = oneOf(env, 'BERTH_ROLE', roles)
  const fleet = fleetSettings(env, { role, dataDir })
  return {
    ...fleet,
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
    serverLink: null,
    metrics,
    gatewayMetrics,
    gatewayWorkers: gatewayWorkers(env),
    gatewayPorts: portRange(env, 'BERTH_GATEWAY_PORTS', [
      apiAddress,
      gatewayHttp,
      gatewayTls,
      gatewayMysql,
      metrics,
      gatewayMetrics,
      ...(fleet.hostsAddress ? [fleet.hostsAddress] : []),
      ...(fleet.gatewayHandover ? [fleet.gatewayHandover] : []),
    ]),
    tlsFiles: tlsFiles(env),
    acme: acme(env),
    domain,
    gatewayPublicUrl: urlBelow(env, 'BERTH_GATEWAY_PUBLIC_URL', domain),
    gatewayPublicTls: port(env, 'BERTH_GATEWAY_PUBLIC_TLS'),
    gatewayPublicMysql: port(env, 'BERTH_GATEWAY_PUBLIC_MYSQL'),
    publicUrl: originOf(env, 'BERTH_PUBLIC_URL') ?? httpUrl(apiAddress),
    trustedProxies: addressRanges(env, 'BERTH_TRUSTED_PROXIES'),
    clientMetadata: clientMetadata(env),
    clientHosts: hostNames(env, 'BERTH_CLIENT_HOSTS'),
    apiHosts: hostNames(env, 'BERTH_API_HOSTS'),
    isolation: oneOf(env, 'BERTH_ISOLATION', ['auto', 'gvisor', 'runc']),
    gvisorCommands: oneOf(env, 'BERTH_GVISOR_COMMANDS', ['auto', 'direct', 'runsc']),
    runsc: env['BERTH_RUNSC'] === undefined ? null : resolve(env['BERTH_RUNSC']),
    runscBuild: oneOf(env, 'BERTH_RUNSC_BUILD', ['on', 'off']) === 'on' ? loadBuildSettings(env) : null,
    criu: env['BERTH_CRIU'] === undefined ? null : resolve(env['BERTH_CRIU']),
    databaseUrl: env['DATABASE_URL'] ?? null,
    sleepDefault: sleepWindow(env, 'BERTH_SLEEP_DEFAULT', '30m'),
    sleepMax: sleepWindow(env, 'BERTH_SLEEP_MAX', 'never'),
    frozenForMs: duration(env, 'BERTH_FROZEN_FOR', '10m'),
    memoryReserveMb: wholeNumber(env, 'BERTH_MEMORY_RESERVE_MB', 512),
    readyMachines: wholeNumber(env, 'BERTH_READY_MACHINES', 1),
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
    rateTimes: wholeNumber(env, 'BERTH_RATE_POLICY_TIMES', 20),
    commandsAtOnce: wholeNumber(env, 'BERTH_TEAM_COMMANDS', 64),
    auditDays: wholeNumber(env, 'BERTH_AUDIT_DAYS', 90),
    mail: {
      smtpUrl: urlOf(env, 'BERTH_SMTP_URL', ['smtp:', 'smtps:']),
      from: emailAddress(env, 'BERTH_MAIL_FROM') ?? `berth@${domain}`,
    },
    supportEmail: emailAddress(env, 'BERTH_SUPPORT_EMAIL'),
    signIn: signInClients(env),
    claudeUrl: urlOf(env, 'BERTH_CLAUDE_URL', ['https:', 'http:']),
    freeCreditsCents: wholeNumber(env, 'BERTH_FREE_CREDITS_CENTS', 500),
    payments: stripe(env),
  }
}

function gatewayWorkers(env: Env): number {
  const text = env['BERTH_GATEWAY_WORKERS'] ?? 'auto'
  if (text === 'auto') return defaultGatewayWorkers()
  if (/^[1-9][0-9]?$/.test(text) && Number(text) <= MAX_GATEWAY_WORKERS) return Number(text)
  throw new Error(
    `BERTH_GATEWAY_WORKERS must be "auto" or a number from 1 to ${MAX_GATEWAY_WORKERS}, not "${text}"`,
  )
}

/** A client that sees it announced does not register otherwise, so it must work. */
function clientMetadata(env: Env): boolean {
  const chosen = oneOf(env, 'BERTH_CLIENT_METADATA', ['auto', 'on', 'off'])
  if (chosen !== 'auto') return chosen === 'on'
  return (env['BERTH_PUBLIC_URL'] ?? '').startsWith('https:')
}

/** For processes that send no mail, sign no one in and take no payments. */
export function withoutSecrets(config: Config): Config {
  return {
    ...config,
    joinToken: null,
    mail: { ...config.mail, smtpUrl: null },
    signIn: { github: null, google: null },
    payments: null,
  }
}

export function httpUrl({ host, port }: Address): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
