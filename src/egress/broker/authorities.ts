// The authority of each team: its key is made here, is kept in this process's own directory, and never leaves it. It
// stays for ever, since the memory of units, and of their forks, trusts it.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'
import { makeKey, toPem } from '../../certificates/signed.ts'
import { authorityCertificate, hostCertificate } from '../../certificates/team-authority.ts'
import { type Clock, DAY } from '../../lib/clock.ts'
import { writeDurably } from '../../lib/write-durably.ts'

export type Authorities = {
  /** Returns the certificate of a team's authority, in PEM; the team gets one if it has none. */
  certificateOf(team: number): Promise<string>
  /** Returns what a server needs to be a host to the team's units. */
  contextFor(team: number, host: string): Promise<SecureContext>
}

type Authority = { name: string; key: KeyObject; certificate: string }

const MAX_CONTEXTS = 2048
/** Well before the certificate ends. */
const RENEWED_AFTER_MS = 3 * DAY

export async function openAuthorities(directory: string, clock: Clock): Promise<Authorities> {
  const known = new Map<number, Promise<Authority>>()
  const contexts = new Map<string, { context: Promise<SecureContext>; until: number }>()
  // One for all hosts and teams, and for as long as this process lives: it proves nothing without an authority.
  const hostKey = await makeKey()

  const authorityOf = (team: number): Promise<Authority> => {
    const found = known.get(team) ?? openAuthority(join(directory, String(team)), team, clock.now())
    known.set(team, found)
    found.catch(() => known.delete(team))
    return found
  }
  const makeContext = async (team: number, host: string): Promise<SecureContext> => {
    const authority = await authorityOf(team)
    const cert = hostCertificate(host, hostKey, authority, clock.now())
    return createSecureContext({ key: toPem(hostKey), cert: cert + authority.certificate })
  }

  return {
    certificateOf: async (team) => (await authorityOf(team)).certificate,

    async contextFor(team, host) {
      const id = `${team} ${host}`
      const kept = contexts.get(id)
      const nowMs = clock.monotonicMs()
      if (kept && kept.until > nowMs) return await kept.context
      const context = makeContext(team, host)
      contexts.delete(id)
      if (contexts.size >= MAX_CONTEXTS) contexts.delete(contexts.keys().next().value ?? '')
      contexts.set(id, { context, until: nowMs + RENEWED_AFTER_MS })
      context.catch(() => contexts.delete(id))
      return await context
    },
  }
}

async function openAuthority(directory: string, team: number, now: Date): Promise<Authority> {
  const name = `Berth secrets of team ${team}`
  const paths = { key: join(directory, 'ca.key'), certificate: join(directory, 'ca.crt') }
  const kept = await readAuthority(paths)
  if (kept) return { name, ...kept }
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const key = await makeKey()
  const certificate = authorityCertificate(name, { key, now })
  // The certificate last: without one, what an interrupted attempt has left is made again.
  await writeDurably(paths.key, toPem(key), 0o600)
  await writeDurably(paths.certificate, certificate, 0o600)
  return { name, key, certificate }
}

/** Returns null if there is none yet. One that cannot be read is an error: units trust it, and no other. */
async function readAuthority(paths: { key: string; certificate: string }) {
  let certificate: string
  try {
    certificate = await readFile(paths.certificate, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  const key = createPrivateKey(await readFile(paths.key))
  if (!new X509Certificate(certificate).checkPrivateKey(key))
    throw new Error(`the key of the authority in ${paths.certificate} is another one’s`)
  return { key, certificate }
}
