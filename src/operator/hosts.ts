// `npm run hosts -- …`: the hosts of this Berth, certificates for machines whose engines a server elsewhere may call, and
// whether such an engine answers. The last use only the data directory, so they work with or without a running Berth.

import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { issueIdentity } from '../certificates/fleet-ca.ts'
import type { Config } from '../config.ts'
import { refuseBrokenHost } from '../doctor/preflight.ts'
import type { Engine } from '../engine/engine.ts'
import { askEngineEpoch, connectEngine } from '../engine/ipc/client.ts'
import { isHostName, parseIdentity } from '../lib/fleet-identity.ts'
import { createLog } from '../lib/log.ts'
import { address, type Address } from '../lib/setting-values.ts'
import { print } from '../lib/terminal.ts'
import { listHosts } from '../store/hosts.ts'
import { findInstance } from '../supervisor/instance.ts'
import { openLogFile } from '../supervisor/log-file.ts'
import { runBesideBerth } from './beside-berth.ts'
import { tableOfHosts } from './hosts-list.ts'
import { tableOfHostEvents } from './hosts-log.ts'
import { decideAboutHost, type HostVerb, hostVerbs } from './hosts-states.ts'
import { listBlocks, takeBlockBack } from './join/blocks.ts'
import { openDoor } from './join/door.ts'
import { joinFleet, keepIdentity } from './join/join.ts'
import { type JoinToken, readToken, writeToken } from './join/protocol.ts'

const help = `The hosts of this Berth, and machines whose engines answer over the network.

  npm run hosts -- list
      Each host: its state, how many units it has, when it was last seen, and what to do. Berth must be running.

  npm run hosts -- log [NAME]
      What happened to them: who was away, came back, was drained, given up or removed, and when.

  npm run hosts -- drain NAME | undrain NAME
      A host that is drained takes no units of new teams, and no new units of its own teams; what is there goes on.

  npm run hosts -- lost NAME
      Only you know that a host will not come back: its units have lost their runs, and their disks are there alone.

  npm run hosts -- remove NAME
      A host without units, drained or lost, or one that has joined.

  npm run hosts -- join-token NAME ADDRESS:PORT
      Prints a token for the machine NAME and waits for it there, at an address of this machine: for an hour, and once.

  npm run hosts -- join TOKEN FILE
      On the other machine: makes a key, gets a certificate for it, valid for a year, and writes both to FILE, for root
      alone. Then start Berth there with BERTH_ENGINE_CERTIFICATE=FILE and BERTH_ENGINE_TLS=ADDRESS:7075.

  npm run hosts -- certificate NAME FILE
      The same for a machine that cannot reach this one: writes key and certificate here. Move the file there.

  npm run hosts -- check NAME ADDRESS:PORT
      Whether that engine answers this machine, and if not, what to look at.

A server does not place units on other machines yet: each Berth still runs its units itself.`

type Command =
  | { kind: 'help' }
  | { kind: 'list' }
  | { kind: 'log'; name: string | null }
  | { kind: 'decide'; verb: HostVerb; name: string }
  | { kind: 'join'; token: JoinToken; file: string }
  | { kind: 'certificate'; name: string; file: string }
  | { kind: 'join-token'; name: string; at: Address }
  | { kind: 'check'; name: string; at: Address }

/** Returns the exit code. Throws a sentence for the operator. */
export async function runHostsCommand(config: Config, args: string[]): Promise<number> {
  const { dataDir } = config
  const command = parseCommand(args)
  if (command.kind === 'help') print(help)
  else if (command.kind === 'list') for (const line of await listEverything(config)) print(line)
  else if (command.kind === 'log')
    for (const line of await runBesideBerth(config, ({ db }) => tableOfHostEvents(db, command.name)))
      print(line)
  else if (command.kind === 'decide') for (const line of await decide(config, command)) print(line)
  else if (command.kind === 'join-token') await waitForHost(config, command)
  else if (command.kind === 'join') {
    await refuseBrokenHost(config)
    await joinFleet(command.token, { file: command.file, dataDir })
    print(
      `This machine is ${command.token.name}. Start Berth on it with BERTH_ENGINE_CERTIFICATE=${command.file} and BERTH_ENGINE_TLS=ADDRESS:7075.`,
    )
  } else if (command.kind === 'certificate') {
    await writeCertificate(dataDir, command)
    print(
      `${command.file} is the key and the certificate of ${command.name}. "npm run hosts -- --help" says what to do with it.`,
    )
  } else print(await checkHost(dataDir, command))
  return 0
}

async function decide(config: Config, { verb, name }: { verb: HostVerb; name: string }): Promise<string[]> {
  const { dataDir } = config
  const here = (await findInstance(dataDir))?.id ?? null
  return await runBesideBerth(config, async (inside) => {
    const known = (await listHosts(inside.db)).find((host) => host.name === name || host.id === name)
    if (!known && verb === 'remove' && (await takeBlockBack(dataDir, name))) return [`${name} is removed.`]
    return await decideAboutHost(inside, { verb, name, here, now: new Date() })
  })
}

async function listEverything(config: Config): Promise<string[]> {
  const { dataDir } = config
  const here = await findInstance(dataDir)
  const own = here ? [{ name: '', instance: here.id, subnet: here.subnet }] : []
  const blocks = [...own, ...(await listBlocks(dataDir))]
  return await runBesideBerth(config, ({ db }) => tableOfHosts(db, new Date(), blocks))
}

/** Throws a sentence that says what to type instead. */
export function parseCommand(args: string[]): Command {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' } },
  })
  const [verb, name, third, ...rest] = positionals
  if (values.help || verb === undefined) return { kind: 'help' }
  if (verb === 'list') {
    if (name !== undefined) throw usage('list takes nothing else')
    return { kind: 'list' }
  }
  if (verb === 'log') {
    if (third !== undefined) throw usage(`"${third}" is not expected`)
    return { kind: 'log', name: name ?? null }
  }
  const decision = hostVerbs.find((each) => each === verb)
  if (decision) {
    if (name === undefined) throw usage('say which host: "npm run hosts -- list" shows them')
    if (third !== undefined) throw usage(`"${third}" is not expected`)
    return { kind: 'decide', verb: decision, name }
  }
  if (verb === 'join') {
    if (name === undefined || third === undefined || rest.length > 0)
      throw usage('say the token and which file to write')
    return { kind: 'join', token: readToken(name), file: resolve(third) }
  }
  if (verb !== 'certificate' && verb !== 'check' && verb !== 'join-token')
    throw usage(
      `there is no "${verb}"; use list, log, ${hostVerbs.join(', ')}, join-token, join, certificate or check`,
    )
  if (name === undefined || !isHostName(name))
    throw usage('NAME is up to 32 of a-z, 0-9 and dashes, and begins and ends with none')
  if (rest.length > 0) throw usage(`"${rest[0]}" is not expected`)
  if (verb === 'certificate') {
    if (third === undefined) throw usage('say which file to write')
    return { kind: 'certificate', name, file: resolve(third) }
  }
  if (third === undefined) throw usage('say the address and the port, as 10.0.0.2:7075')
  const at = address({ ADDRESS: third }, 'ADDRESS', '')
  if (verb === 'join-token' && (at.host === '0.0.0.0' || at.host === '::'))
    throw usage('say the address at which the other machine reaches this one')
  return { kind: verb, name, at }
}

async function waitForHost({ dataDir, logLevel }: Config, { name, at }: { name: string; at: Address }) {
  const logFile = await openLogFile(dataDir)
  const log = createLog('operator', logLevel, logFile.descriptor)
  try {
    const door = await openDoor({ dataDir, name, at, log })
    print(`On the other machine, as root, within an hour:

  npm run hosts -- join ${writeToken(door.token)} /root/${name}.pem

It is waited for at ${door.token.host}:${door.token.port}. Ctrl-C makes the token void.`)
    print(`${name} has joined from ${await door.joined}.`)
  } finally {
    await logFile.close()
  }
}

async function writeCertificate(
  dataDir: string,
  { name, file }: Extract<Command, { kind: 'certificate' }>,
): Promise<void> {
  const identity = await issueIdentity(dataDir, { role: 'engine', host: name }, new Date())
  await keepIdentity(file, identity)
}

/** Returns the line to print. */
async function checkHost(dataDir: string, { name, at }: Extract<Command, { kind: 'check' }>) {
  const server = { role: 'server', host: 'operator' } as const
  const identity = parseIdentity(await issueIdentity(dataDir, server, new Date()))
  const where = `${at.host}:${at.port}`
  try {
    const engine = { ...at, name, identity }
    const epoch = await askEngineEpoch(engine)
    const answers = `The engine of ${name} answers at ${where}.`
    if (epoch === 0) return `${answers} No server has called it yet.`
    return `${answers} ${await describeEngine(connectEngine({ address: engine, epoch, onLost: () => {} }))}`
  } catch (error) {
    throw new Error(`The engine of ${name} does not answer at ${where}: ${reasonOf(error, name)}`, {
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
  CERT_HAS_EXPIRED: 'its certificate has expired. Make another one, and start Berth there again.',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet. Compare the clocks of both machines.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'another machine answers. Compare name and address.',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is of another Berth. Make one on this machine.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is of another Berth. Make one on this machine.',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is of another Berth. Make one on this machine.',
}

function reasonOf(error: unknown, name: string): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return (
    reasons[code] ??
    `${cause instanceof Error ? cause.message : String(cause)}. Its log says more, on ${name}.`
  )
}

function usage(problem: string): Error {
  return new Error(`${problem}. "npm run hosts -- --help" shows how it is used.`)
}
