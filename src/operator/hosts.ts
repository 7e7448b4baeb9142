// `npm run hosts -- …`: the hosts of this Berth, how a machine becomes one, and whether its engine answers.

import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { issueIdentity, readAuthorityTimes } from '../certificates/fleet-ca.ts'
import type { Config } from '../config.ts'
import { isHostName } from '../lib/fleet-identity.ts'
import { address, type Address } from '../lib/setting-values.ts'
import { print } from '../lib/terminal.ts'
import { listHosts } from '../store/hosts.ts'
import { findInstance } from '../supervisor/instance.ts'
import { listBlocks, takeBlockBack } from '../supervisor/join/blocks.ts'
import { writeToken } from '../supervisor/join/protocol.ts'
import { runBesideBerth } from './beside-berth.ts'
import { checkHost, reclaimHost } from './hosts-engines.ts'
import { openDoorOf } from './hosts-join.ts'
import { adviceOnAuthority, tableOfHosts } from './hosts-list.ts'
import { tableOfHostEvents } from './hosts-log.ts'
import { decideAboutHost, type HostVerb, hostVerbs } from './hosts-states.ts'

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
      Prints how the machine NAME joins, and waits for it there, at an address of this machine: for an hour, and once.

  npm run hosts -- check NAME ADDRESS:PORT
      Whether that engine answers this machine, and if not, what to look at.

  npm run hosts -- reclaim NAME
      Only you know that no other server is meant to call a host that another one has called, as after a restored
      backup: this server then restarts, and the host follows it.

  npm run hosts -- certificate NAME FILE
      Writes key and certificate for a Berth whose engine is to answer over TLS beside its own server. A host needs none.`

type Command =
  | { kind: 'help' }
  | { kind: 'list' }
  | { kind: 'log'; name: string | null }
  | { kind: 'decide'; verb: HostVerb; name: string }
  | { kind: 'reclaim'; name: string }
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
  else if (command.kind === 'reclaim') print(await reclaimHost(config, command.name))
  else if (command.kind === 'certificate') {
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
    const lines = await decideAboutHost(inside, { verb, name, here, now: new Date() })
    if (known && verb === 'remove') await takeBlockBack(dataDir, known.name)
    return lines
  })
}

async function listEverything(config: Config): Promise<string[]> {
  const { dataDir } = config
  const here = await findInstance(dataDir)
  const own = here ? [{ name: '', instance: here.id, subnet: here.subnet }] : []
  const blocks = [...own, ...(await listBlocks(dataDir))]
  const now = new Date()
  const lines = await runBesideBerth(config, ({ db }) => tableOfHosts(db, now, blocks))
  return [...lines, ...adviceOnAuthority(await readAuthorityTimes(dataDir), now)]
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
  if (verb === 'reclaim') {
    if (name === undefined || third !== undefined) throw usage('say which host, and nothing else')
    return { kind: 'reclaim', name }
  }
  if (verb !== 'certificate' && verb !== 'check' && verb !== 'join-token')
    throw usage(
      `there is no "${verb}"; use list, log, ${hostVerbs.join(', ')}, join-token, check, reclaim or certificate`,
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

async function waitForHost(config: Config, { name, at }: { name: string; at: Address }): Promise<void> {
  await runBesideBerth(config, async (inside) => {
    const door = await openDoorOf(config, inside, { name, at })
    print(`On the other machine, as root, within an hour:

  BERTH_ROLE=host BERTH_JOIN=${writeToken(door.token)} npm start

It is waited for at ${door.token.host}:${door.token.port}. Ctrl-C makes the token void.`)
    print(`${name} has joined from ${await door.joined}. "npm run hosts -- list" shows when it is ready.`)
  })
}

async function writeCertificate(
  dataDir: string,
  { name, file }: Extract<Command, { kind: 'certificate' }>,
): Promise<void> {
  const identity = await issueIdentity(dataDir, { role: 'engine', host: name }, new Date())
  // A file that is there may be in use.
  await writeFile(file, identity, { mode: 0o600, flag: 'wx' }).catch((cause: NodeJS.ErrnoException) => {
    const why =
      cause.code === 'EEXIST' ? 'is there already: name another one' : `cannot be written (${cause.code})`
    throw new Error(`${file} ${why}.`, { cause })
  })
}

function usage(problem: string): Error {
  return new Error(`${problem}. "npm run hosts -- --help" shows how it is used.`)
}
