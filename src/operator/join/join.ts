// `npm run hosts -- join`, on the machine that joins: it makes a key, which never leaves it, and gets a certificate for it
// from the server's machine.

import { constants } from 'node:fs'
import { access, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { makeKey, signingRequest, toPem } from '../../certificates/signed.ts'
import { fleetNameOf, parseIdentity } from '../../lib/fleet-identity.ts'
import { findFreeSubnets, isUnused, keepInstance, loadInstance } from '../../supervisor/instance.ts'
import {
  ANSWER_WITHIN_MS,
  fingerprintOf,
  joinAnswer,
  type JoinToken,
  ownVersion,
  readLine,
} from './protocol.ts'

type Joining = { file: string; dataDir: string }

/** Writes key and certificates to a new file. Throws a sentence, and leaves nothing. */
export async function joinFleet(token: JoinToken, { file, dataDir }: Joining): Promise<void> {
  await refuseUnwritable(file)
  const instance = await loadInstance(dataDir)
  const free = (await isUnused(dataDir)) ? await findFreeSubnets() : []
  const others = free.map((subnet) => Number(subnet.split('.')[1]))
  const key = await makeKey()
  const name = fleetNameOf({ role: 'engine', host: token.name })
  const request = signingRequest([name], key).toString('base64')
  const own = { instance: instance.id, subnet: instance.subnet, others }
  const asked = { version: await ownVersion(), secret: token.secret, at: Date.now(), request, ...own }
  const { certificates, subnet } = await askDoor(token, JSON.stringify(asked))
  const identity = toPem(key) + certificates
  parseIdentity(identity)
  if (subnet !== instance.subnet && !free.includes(subnet))
    throw new Error(`The server gave this machine the addresses ${subnet}, which are in use here.`)
  if (subnet !== instance.subnet) await keepInstance(dataDir, { ...instance, subnet })
  await keepIdentity(file, identity)
}

/** A file that is there may be in use. */
export async function keepIdentity(file: string, identity: string): Promise<void> {
  await writeFile(file, identity, { mode: 0o600, flag: 'wx' }).catch((cause: NodeJS.ErrnoException) => {
    const why =
      cause.code === 'EEXIST' ? 'is there already: name another one' : `cannot be written (${cause.code})`
    throw new Error(`${file} ${why}.`, { cause })
  })
}

/** Before the token is used. */
async function refuseUnwritable(file: string): Promise<void> {
  const isThere = await access(file).then(
    () => true,
    () => false,
  )
  if (isThere) throw new Error(`${file} is there already: name another one.`)
  await access(dirname(file), constants.W_OK).catch((cause: NodeJS.ErrnoException) => {
    throw new Error(`${file} cannot be written (${cause.code}).`, { cause })
  })
}

/** Nothing is sent to a machine that does not show the certificate that the token names. */
async function askDoor({ host, port, fingerprint }: JoinToken, line: string) {
  const where = `${host}:${port}`
  // The fingerprint is checked instead: this machine has no authority yet.
  const socket = connect({ host, port, minVersion: 'TLSv1.3', rejectUnauthorized: false })
  const tooLong = setTimeout(() => socket.destroy(new Error('it took too long')), ANSWER_WITHIN_MS)
  try {
    await connected(socket)
    const shown = socket.getPeerX509Certificate()
    if (!shown || fingerprintOf(shown) !== fingerprint)
      throw new Error('another machine answers there. Compare the address with that of the server.')
    socket.write(`${line}\n`)
    const answer = joinAnswer.parse(JSON.parse(await readLine(socket)))
    if ('refused' in answer) throw new Error(`${answer.refused}.`)
    return answer
  } catch (cause) {
    throw new Error(`This machine has not joined at ${where}: ${reasonOf(cause)}`, { cause })
  } finally {
    clearTimeout(tooLong)
    socket.destroy()
  }
}

async function connected(socket: TLSSocket): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.on('error', reject)
  })
}

const reasons: Record<string, string> = {
  ECONNREFUSED:
    'nothing listens there. Its token is used or too old, or its command has ended: make another one.',
  EHOSTUNREACH: 'there is no route to this address.',
  ENETUNREACH: 'there is no route to this address.',
  ENOTFOUND: 'the name has no address.',
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return reasons[code] ?? (error instanceof Error ? error.message : String(error))
}
