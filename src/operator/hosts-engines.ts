// `npm run hosts -- check` and `reclaim`: what the engine of another machine answers to this one.

import { issueIdentity } from '../certificates/fleet-ca.ts'
import type { Config } from '../config.ts'
import type { Engine } from '../engine/engine.ts'
import { askEngineEpoch, connectEngine } from '../engine/ipc/client.ts'
import { parseIdentity } from '../lib/fleet-identity.ts'
import { type Address, parseAddress } from '../lib/setting-values.ts'
import { listHosts } from '../store/hosts.ts'
import { findLeader, raiseEpoch } from '../store/leaders.ts'
import { runBesideBerth } from './beside-berth.ts'

/** Returns the line to print. */
export async function checkHost(dataDir: string, to: { name: string; at: Address }): Promise<string> {
  const address = await addressOf(dataDir, to)
  const epoch = await askEpoch(address)
  const answers = `The engine of ${to.name} answers at ${to.at.host}:${to.at.port}.`
  if (epoch === 0) return `${answers} No server has called it yet.`
  return `${answers} ${await describeEngine(connectEngine({ address, epoch, onLost: () => {} }))}`
}

/**
 * A server with a higher epoch has called the host, and this one leads above it. That is the operator's to say: two
 * servers of two databases would otherwise take the host from each other for ever. Returns the line to print.
 */
export async function reclaimHost(config: Config, name: string): Promise<string> {
  return await runBesideBerth(config, async ({ db, log }) => {
    const host = (await listHosts(db)).find((each) => each.name === name || each.id === name)
    if (!host || host.state === 'removed' || host.address === null)
      throw new Error(`There is no host "${name}" of another machine; "npm run hosts -- list" shows them.`)
    const at = parseAddress(host.address)
    const epoch = await askEpoch(await addressOf(config.dataDir, { name: host.name, at }))
    const own = (await findLeader(db))?.epoch ?? 0
    if (epoch <= own) return `${host.name} follows this server already.`
    await raiseEpoch(db, epoch)
    log.warn({ host: host.name, epoch }, 'operator has reclaimed a host')
    return `${host.name} follows this server from now on, which restarts for it; units go on.`
  })
}

type FarAddress = Awaited<ReturnType<typeof addressOf>>

async function addressOf(dataDir: string, { name, at }: { name: string; at: Address }) {
  const server = { role: 'server', host: 'operator' } as const
  return { ...at, name, identity: parseIdentity(await issueIdentity(dataDir, server, new Date())) }
}

async function askEpoch(engine: FarAddress): Promise<number> {
  try {
    return await askEngineEpoch(engine)
  } catch (error) {
    const { name, host, port } = engine
    throw new Error(`The engine of ${name} does not answer at ${host}:${port}: ${reasonOf(error, name)}`, {
      cause: error,
    })
  }
}

/** It is asked in the name of its present server, which so keeps it. */
async function describeEngine(engine: Engine): Promise<string> {
  const [{ classes }, { cpus, memoryMb, availableMemoryMb }] = await Promise.all([
    engine.capabilities(),
    engine.capacity(),
  ])
  const usable = classes.filter(({ available }) => available).map((each) => each.class)
  const isolation = usable.length === 0 ? 'no isolation class' : usable.join(' and ')
  return `It has ${isolation}, ${cpus} processors, and ${availableMemoryMb} of ${memoryMb} MB of memory are free.`
}

const reasons: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there. Is Berth running on it, with BERTH_ENGINE_TLS at this address?',
  EHOSTUNREACH: 'there is no route to this address.',
  ENETUNREACH: 'there is no route to this address.',
  ENOTFOUND: 'the name has no address.',
  CERT_HAS_EXPIRED: 'its certificate has expired. Join it again with another token.',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet. Compare the clocks of both machines.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'another machine answers. Compare name and address.',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is of another Berth. Join it with a token of this one.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is of another Berth. Join it with a token of this one.',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is of another Berth. Join it with a token of this one.',
}

function reasonOf(error: unknown, name: string): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return (
    reasons[code] ??
    `${cause instanceof Error ? cause.message : String(cause)}. Its log says more, on ${name}.`
  )
}
