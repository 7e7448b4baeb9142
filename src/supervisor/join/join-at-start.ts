// What a host does before anything else: it joins, if it has not yet, or goes on with what it got when it did.

import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { X509Certificate } from 'node:crypto'
import type { Config } from '../../config.ts'
import { address, addressText } from '../../lib/setting-values.ts'
import { print, printError } from '../../lib/terminal.ts'
import { fingerprintOfToken, joinFleet } from './join.ts'
import { hostIdentitiesIn } from '../../processes/channel.ts'
import { listMachinesAndDisks } from '../instance.ts'
import { findMembership, type Membership, readIdentityFile } from './membership.ts'
import { type JoinToken, type PodInvitation, readToken } from './protocol.ts'

/** One data directory is never that of a host and of a Berth with a server. Throws a sentence. */
export async function refuseOtherRole({ role, dataDir }: Pick<Config, 'role' | 'dataDir'>): Promise<void> {
  if (role === 'host') {
    const hasServer = await access(join(dataDir, 'credentials.json')).then(
      () => true,
      () => false,
    )
    if (hasServer)
      throw new Error(
        `${dataDir} is that of a Berth with a server of its own: set BERTH_DATA_DIR to an empty directory to make this machine a host of another one.`,
      )
    return
  }
  if (role === 'server') await refuseMachines(dataDir)
  const membership = await findMembership(dataDir)
  if (membership)
    throw new Error(
      `${dataDir} is that of ${membership.name}, a host of the Berth at ${membership.door.host}: start it with BERTH_ROLE=host.`,
    )
}

/** Their engine would be no more. */
async function refuseMachines(dataDir: string): Promise<void> {
  const machines = await listMachinesAndDisks(dataDir)
  if (machines.length > 0)
    throw new Error(
      `${dataDir} has machines or disks of ${machines.length} units, and BERTH_ROLE=server has no engine for them: start it without BERTH_ROLE, and destroy them first.`,
    )
}

/** Where a pod finds what it shows at the door (the chart's projected volume). */
const POD_DIRECTORY = '/var/run/secrets/berth'

/**
 * A token that was used here already does nothing more; a pod of Kubernetes joins each time, so that one that was given up
 * takes units again, and goes on where it cannot. Throws a sentence that says what to do.
 */
export async function joinAtStart(config: Config, podDirectory = POD_DIRECTORY): Promise<Membership> {
  const { dataDir, joinToken, engineTls, engineAddress } = config
  const known = await findMembership(dataDir)
  const trouble = known && (await troubleWith(dataDir))
  const goesOn = (error: unknown): null => {
    if (!known || trouble || !joinToken?.startsWith(IN_A_POD)) throw error
    printError(error instanceof Error ? error.message : String(error))
    return null
  }
  const token = joinToken === null ? null : await readInvitation(joinToken, podDirectory).catch(goesOn)
  if (known && !trouble && (token === null || known.token === fingerprintOfToken(token))) return known
  if (token === null || engineTls === null)
    throw new Error(
      `${trouble ?? 'This machine has not joined a Berth yet'}: run "npm run hosts -- join-token NAME ADDRESS:PORT" on the server's machine, and start again with BERTH_JOIN=TOKEN.`,
    )
  print(`Joining at ${addressText(token)}${'fingerprint' in token ? ` as ${token.name}` : ''}`)
  try {
    const { host, port } = engineTls
    return await joinFleet(token, { dataDir, listen: { host, port }, reachedAt: engineAddress })
  } catch (error) {
    if (!known || trouble) throw error
    printError(error instanceof Error ? error.message : String(error))
    printError(`It goes on as ${known.name}, with the certificate that it has.`)
    return known
  }
}

const IN_A_POD = 'kubernetes:'

/** Throws a sentence for a setting that is none. */
async function readInvitation(text: string, podDirectory: string): Promise<PodInvitation | JoinToken> {
  if (!text.startsWith(IN_A_POD)) return readToken(text)
  const at = address({ BERTH_JOIN: text.slice(IN_A_POD.length) }, 'BERTH_JOIN', '')
  try {
    const [secret, authority] = await Promise.all([
      readFile(join(podDirectory, 'token'), 'utf8'),
      readFile(join(podDirectory, 'ca.crt'), 'utf8'),
    ])
    return { ...at, secret: secret.trim(), authority }
  } catch (cause) {
    throw new Error(
      `A pod joins with the files token and ca.crt in ${podDirectory}: ${(cause as Error).message}. The server writes the latter once it has started.`,
      { cause },
    )
  }
}

/** Returns why the engine's certificate cannot be used, or null. */
async function troubleWith(dataDir: string): Promise<string | null> {
  const file = hostIdentitiesIn(dataDir).engine
  try {
    const { certificate } = await readIdentityFile(file)
    const until = new X509Certificate(certificate).validToDate
    return until > new Date()
      ? null
      : `The certificate of this host has expired on ${until.toISOString().slice(0, 10)}`
  } catch (error) {
    return `${file} cannot be used (${error instanceof Error ? error.message : String(error)})`
  }
}
