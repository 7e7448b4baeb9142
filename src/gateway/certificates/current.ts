// The certificate visitors are shown: a chain and its key in one file of PEM, which somebody else puts there and
// renews (certificates/default.ts). A new one is taken up without a restart; connections that are open keep theirs.

import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import { type Clock, SECOND } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { runLoop } from '../../lib/loop.ts'
import type { Challenges } from './acme-challenges.ts'

export type Certificates = {
  /** For a name of a greeting, in lower case; undefined: the one that is followed. */
  find(serverName: string): Promise<SecureContext | undefined>
  /** Calls with the chain and key as they are, in PEM, and with those that take their place. */
  follow(use: (pem: string) => void): void
  /** Where they are proved to an authority. */
  challenges?: Challenges
}

export type DefaultCertificates = Certificates & { stop(): Promise<void> }

const LOOK_EVERY_MS = 5 * SECOND

/** Throws when there is none to begin with. */
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
    log.info({}, 'a new certificate is in use')
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

/** Throws when the key is not the certificate's. */
async function readPem(file: string): Promise<string> {
  const pem = await readFile(file, 'utf8')
  createSecureContext({ cert: pem, key: pem })
  return pem
}
