// The default certificate for visitors: chain and key in one PEM file, which certificates/default.ts writes and
// renews. A new one is used without a restart; open connections keep the old one.

import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import { type Clock, SECOND } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { runLoop } from '../../lib/loop.ts'
import type { Challenges } from './acme-challenges.ts'

export type Certificates = {
  /** For a server name in lower case; undefined means the default certificate. */
  find(serverName: string): Promise<SecureContext | undefined>
  /** Calls `use` with the current chain and key, in PEM, and with each replacement. */
  follow(use: (pem: string) => void): void
  /** Answers the challenges of an authority. */
  challenges?: Omit<Challenges, 'proof'>
}

export type DefaultCertificates = Certificates & { stop(): Promise<void> }

const LOOK_EVERY_MS = 5 * SECOND

/** Throws if there is no certificate at the start. */
export async function openCertificates({
  file,
  clock,
  log,
}: {
  file: string
  clock: Clock
  log: Log
}): Promise<DefaultCertificates> {
  let pem = await readPem(file)
  const followers = new Set<(pem: string) => void>()

  async function look(): Promise<void> {
    const now = await readPem(file)
    if (now === pem) return
    pem = now
    for (const use of followers) use(pem)
    log.info({}, 'new certificate in use')
  }

  const stopping = new AbortController()
  const looking = runLoop(
    { name: 'certificates', everyMs: LOOK_EVERY_MS, timeoutMs: 10 * SECOND, run: look },
    { clock, log, signal: stopping.signal },
  )
  return {
    find: async () => undefined,
    follow(use) {
      followers.add(use)
      use(pem)
    },
    async stop() {
      stopping.abort()
      await looking
    },
  }
}

/** Throws if the key does not match the certificate. */
async function readPem(file: string): Promise<string> {
  const pem = await readFile(file, 'utf8')
  createSecureContext({ cert: pem, key: pem })
  return pem
}
