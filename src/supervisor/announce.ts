// What the operator is told once everything runs.

import type { Config } from '../config.ts'
import { caFileOf } from '../certificates/default.ts'
import { logPathOf } from '../lib/log.ts'
import { print } from '../lib/terminal.ts'
import type { EngineReady } from '../processes/channel.ts'
import { type Credentials, credentialsPath } from './credentials-file.ts'
import type { Membership } from './join/membership.ts'
import { addressText } from '../lib/setting-values.ts'

export function announce(config: Config, ready: { engine: EngineReady; credentials: Credentials }): void {
  const { engine, credentials } = ready
  print(`
Berth is ready.

  API          ${credentials.baseUrl}
  Sign in      ${credentials.signInUrl}
               (works once, within a day; "npm run sign-in" makes another)
  Units' URLs  ${trustedBy(config)}
  Credentials  ${credentialsPath(config.dataDir)} (with the API key; for root alone)
  Isolation    ${engine.isolation}: ${engine.reason}
  Log          ${logPathOf(config.dataDir)}

Ctrl-C stops Berth. Units keep running, and the next start takes them over.
`)
}

function trustedBy(config: Config): string {
  const where = `below https://${config.domain}:${config.gatewayTls.port}`
  const caFile = caFileOf(config)
  if (caFile !== null) return `${where}; visitors must trust ${caFile}`
  return `${where}, with ${config.tlsFiles ? config.tlsFiles.cert : `a certificate from ${config.acme?.directory}`}`
}

export function announceHost(config: Config, { name, door }: Membership, engine: EngineReady): void {
  print(`
Berth is ready, as the host ${name}.

  Server       on the machine ${door.host}; "npm run hosts -- list" there shows whether it calls this host
  Units' URLs  ${trustedBy(config)}
  Engine       ${config.engineTls ? addressText(config.engineTls) : '-'}, for that server alone
  Isolation    ${engine.isolation}: ${engine.reason}
  Log          ${logPathOf(config.dataDir)}

Ctrl-C stops this host's processes. Units keep running, and the next start takes them over.
`)
}
