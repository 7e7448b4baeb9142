// `npm run hosts -- …`: the hosts of this Berth, how a machine becomes one, and whether its engine answers.

import { X509Certificate } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { issueIdentity, readAuthorityTimes } from '../certificates/fleet-ca.ts'
import type { Config } from '../config.ts'
import type { Kysely } from 'kysely'
import { addressIn } from '../processes/leadership.ts'
import type { Database } from '../store/db.ts'
import { findLeader } from '../store/leaders.ts'
import { isHostName, parseIdentity } from '../lib/fleet-identity.ts'
import { address, type Address, addressText } from '../lib/setting-values.ts'
import { print } from '../lib/terminal.ts'
import { listHosts } from '../store/hosts.ts'
import { findInstance } from '../supervisor/instance.ts'
import { listBlocks, takeBlockBack } from '../supervisor/join/blocks.ts'
import { writeToken } from '../supervisor/join/protocol.ts'
import { runBesideBerth } from './beside-berth.ts'
import { checkHost, reclaimHost } from './hosts-engines.ts'
import { helpOf } from './hosts-help.ts'
import { openDoorOf } from './hosts-join.ts'
import { linesOnAuthority, tableOfHosts } from './hosts-list.ts'
import { tableOfHostEvents } from './hosts-log.ts'
import { decideAboutHost, type HostVerb, hostVerbs } from './hosts-states.ts'

type Command =
  | { kind: 'help'; of: string | undefined }
  | { kind: 'list' }
  | { kind: 'log'; name: string | null }
  | { kind: 'decide'; verb: HostVerb; name: string; destroysUnits: boolean }
  | { kind: 'reclaim'; name: string }
  | { kind: 'certificate'; name: string; file: string }
  | { kind: 'join-token'; name: string; at: Address }
  | { kind: 'check'; name: string; at: Address }

/** Returns the exit code. Throws a sentence for the operator. */
export async function runHostsCommand(config: Config, args: string[]): Promise<number> {
  const { dataDir } = config
  const command = parseCommand(args)
  if (command.kind === 'help') print(helpOf(command.of))
  else if (command.kind === 'list') for (const line of await listEverything(config)) print(line)
  else if (command.kind === 'log')
    for (const line of await runBesideBerth(config, ({ db }) => tableOfHostEvents(db, command.name)))
      print(line)
  else if (command.kind === 'decide') for (const line of await decide(config, command)) print(line)
  else if (command.kind === 'join-token') await waitForHost(config, command)
  else if (command.kind === 'reclaim') print(await reclaimHost(config, command.name))
  else if (command.kind === 'certificate') {
    const endsAt = await writeCertificate(dataDir, command)
    print(
      `${command.file} is the key and the certificate of ${command.name}, until ${endsAt}. "npm run hosts -- certificate --help" says what to do with it.`,
    )
  } else print(await checkHost(dataDir, command))
  return 0
}

async function decide(
  config: Config,
  { verb, name, destroysUnits }: Extract<Command, { kind: 'decide' }>,
): Promise<string[]> {
  const { dataDir } = config
  const here = (await findInstance(dataDir))?.id ?? null
  return await runBesideBerth(config, async (inside) => {
    if (verb === 'remove') await refuseAtStandby(config, inside.db)
    const known = (await listHosts(inside.db)).find((host) => host.name === name || host.id === name)
    if (!known && verb === 'remove' && (await takeBlockBack(dataDir, name))) return [`${name} is removed.`]
    const lines = await decideAboutHost(inside, { verb, name, here, now: new Date(), destroysUnits })
    if (known && verb === 'remove') await takeBlockBack(dataDir, known.name)
    return lines
  })
}

/** The one that leads gives addresses to hosts. */
async function refuseAtStandby({ serverAddress }: Config, db: Kysely<Database>): Promise<void> {
  const holder = serverAddress && (await findLeader(db))?.holder
  const at = holder ? addressIn(holder) : null
  if (serverAddress && at && addressText(at) !== addressText(serverAddress))
    throw new Error(`Run this where the server is that leads, at ${addressText(at)}.`)
}

async function listEverything(config: Config): Promise<string[]> {
  const { dataDir } = config
  const here = await findInstance(dataDir)
  const own = here ? [{ name: '', instance: here.id, subnet: here.subnet }] : []
  const blocks = [...own, ...(await listBlocks(dataDir))]
  const now = new Date()
  const lines = await runBesideBerth(config, ({ db }) => tableOfHosts(db, now, blocks))
  return [...lines, ...linesOnAuthority(await readAuthorityTimes(dataDir), now)]
}

/** Throws a sentence that says what to type instead. */
export function parseCommand(args: string[]): Command {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' }, 'destroy-units': { type: 'boolean', default: false } },
  })
  const [verb, name, third, ...rest] = positionals
  if (values.help || verb === undefined) return { kind: 'help', of: verb }
  const destroysUnits = values['destroy-units']
  if (destroysUnits && verb !== 'remove') throw usage('--destroy-units is of remove alone')
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
    return { kind: 'decide', verb: decision, name, destroysUnits }
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
    const refused = (peer: string, why: string) => print(`A machine at ${peer} was refused: ${why}.`)
    const door = await openDoorOf(config, inside, { name, at, refused })
    print(`On the other machine, as root, within an hour:

  BERTH_ROLE=host BERTH_JOIN=${writeToken(door.token)} npm start

It is waited for at ${door.token.host}:${door.token.port}. Ctrl-C makes the token void.`)
    print(`${name} has joined from ${await door.joined}. "npm run hosts -- list" shows when it is ready.`)
  })
}

/** Returns until when it is good. */
async function writeCertificate(
  dataDir: string,
  { name, file }: Extract<Command, { kind: 'certificate' }>,
): Promise<string> {
  const identity = await issueIdentity(dataDir, { role: 'engine', host: name }, new Date())
  // A file that is there may be in use.
  await writeFile(file, identity, { mode: 0o600, flag: 'wx' }).catch((cause: NodeJS.ErrnoException) => {
    const why =
      cause.code === 'EEXIST' ? 'is there already: name another one' : `cannot be written (${cause.code})`
    throw new Error(`${file} ${why}.`, { cause })
  })
  return new X509Certificate(parseIdentity(identity).certificate).validToDate.toISOString().slice(0, 10)
}

function usage(problem: string): Error {
  return new Error(`${problem}. "npm run hosts -- --help" shows how it is used.`)
}
