// What the operator is told once everything runs.

import type { Config } from '../config.ts'
import { caFileOf } from '../certificates/default.ts'
import { logPathOf } from '../lib/log.ts'
import { print } from '../lib/terminal.ts'
import type { EngineReady } from '../processes/channel.ts'
import { type Credentials, credentialsPath } from './credentials-file.ts'
import type { Membership } from './join/membership.ts'
import { addressText } from '../lib/setting-values.ts'

/** Addresses at which this machine reaches the gateway by a name below `.localhost`. */
const hereToo = ['127.0.0.1', '0.0.0.0', '::1', '::']

const INDENTED = `\n${' '.repeat(15)}`

/** `engine` null: a server without one. */
export function announce(
  config: Config,
  ready: { engine: EngineReady | null; credentials: Credentials },
): void {
  const { engine, credentials } = ready
  const units = engine
    ? `
  Units' URLs  ${unitUrls(config).join(INDENTED)}
  Isolation    ${engine.isolation}: ${engine.reason}`
    : `
  Units        on hosts that join ("npm run hosts -- join-token NAME ADDRESS:PORT"), and so are their URLs`
  print(`
Berth is ready.

  API          ${credentials.baseUrl}
  Sign in      ${credentials.signInUrl}
               (works once, within a day; "npm run sign-in" makes another)${units}
  Credentials  ${credentialsPath(config.dataDir)} (with the API key; for root alone)
  Log          ${logPathOf(config.dataDir)}

Ctrl-C stops Berth. Units keep running, and the next start takes them over.
`)
}

/** The first line says where the URLs are and whom a visitor must trust; the second how to look at one without that. */
export function unitUrls(config: Config): string[] {
  const { domain, gatewayHttp, gatewayPublicUrl, gatewayTls } = config
  if (gatewayPublicUrl !== null) return [`below ${gatewayPublicUrl}`]
  const where = `below https://${domain}:${gatewayTls.port}`
  const caFile = caFileOf(config)
  if (caFile === null)
    return [
      `${where}, with ${config.tlsFiles ? config.tlsFiles.cert : `a certificate from ${config.acme?.directory}`}`,
    ]
  const isHereToo = /(^|\.)localhost$/.test(domain) && hereToo.includes(gatewayHttp.host)
  return [
    `${where}; visitors must trust ${caFile} (docs/endpoints.md)`,
    ...(isHereToo ? [`(on this machine http://NAME.${domain}:${gatewayHttp.port} works without it)`] : []),
  ]
}

export function announceServer({ publicUrl, dataDir, serverAddress }: Config): void {
  print(`
Berth is ready, as one of several servers, of which one leads.

  API          ${publicUrl}, at any of them ("npm run sign-in" makes a link to sign in)
  This one     ${serverAddress ? addressText(serverAddress) : '-'}, for the others
  Log          ${logPathOf(dataDir)}

Ctrl-C stops this one. Units keep running, and another server takes the lead.
`)
}

export function announceHost(config: Config, { name, door }: Membership, engine: EngineReady): void {
  print(`
Berth is ready, as the host ${name}.

  Server       on the machine ${door.host}; "npm run hosts -- list" there shows whether it calls this host
  Units' URLs  ${unitUrls(config).join(INDENTED)}
  Engine       ${config.engineTls ? addressText(config.engineTls) : '-'}, for that server alone
  Isolation    ${engine.isolation}: ${engine.reason}
  Log          ${logPathOf(config.dataDir)}

Ctrl-C stops this host's processes. Units keep running, and the next start takes them over.
`)
}
