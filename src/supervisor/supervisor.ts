// `npm start`: starts Postgres, the engine, the server and the gateway in this order, supervises them, and stops them
// in reverse order; on a host only the engine and the gateway, with BERTH_ROLE=server neither of them. Units keep running
// meanwhile, and the next start takes them over (design 2).

import { chmod, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { systemClock } from '../lib/clock.ts'
import { createLog, logPathOf } from '../lib/log.ts'
import { advanceTicketSecret, newTicketSecret } from '../lib/ticket-secret.ts'
import {
  certificateFileIn,
  gatewayDirOf,
  type GatewayWorker,
  identityFileIn,
  type EngineReady,
} from '../processes/channel.ts'
import { signInUrl } from '../domain/credentials/sign-in-url.ts'
import { refuseBrokenHost } from '../doctor/preflight.ts'
import { announce, announceHost, announceServer } from './announce.ts'
import { prepareIdentityOf, renewalsPart } from './fleet-identities.ts'
import { type Credentials, readCredentials, writeCredentials } from './credentials-file.ts'
import { lockDataDirectory } from './data-directory-lock.ts'
import { listMachinesAndDisks, loadInstance, postgresSocketDir, runDirOf } from './instance.ts'
import { keysPart, kubernetesPart, shareKeysFromPod } from './kubernetes/part.ts'
import { joinAtStart, refuseOtherRole } from './join/join-at-start.ts'
import { type Membership, showGatewayIdentity } from './join/membership.ts'
import type { Running } from './restart-policy.ts'
import { openLogFile } from './log-file.ts'
import { caFileOf, type KeptCertificate, prepareCertificate } from '../certificates/default.ts'
import { claimPorts } from '../doctor/ports.ts'
import { postgresUrl } from './postgres.ts'
import {
  keptStateOf,
  prepareGatewayDirectory,
  prepareProcessDirectories,
  stateDirOf,
} from './process-command.ts'
import { engineReadySchema, migrateReadySchema } from './process-reports.ts'
import { lockRunDirectory, removeRunDirectory } from './run-directory.ts'
import { listenForStop } from './stop-signals.ts'
import { whileLeading } from './while-leading.ts'
import { printError, print } from '../lib/terminal.ts'
import { type Context, keepRole, startOnce, warmUp, postgresPart, keep, firstToGiveUp } from './keep-parts.ts'

/** Runs until it is asked to stop, or a service cannot be started. Returns the exit code. */
export async function supervise(settings: Config): Promise<number> {
  const stop = listenForStop(() => {
    printError('stopped by force; units keep running, and the next start takes them over')
    process.exit(130)
  })
  const { context, close } = await prepare(settings, stop)
  try {
    const { config } = context.input
    if (context.membership) announceHost(config, context.membership, await startHost(context))
    else if (config.serverAddress) await startBesideOthers(context).then(() => announceServer(config))
    else announce(config, await startAll(context))
    const gaveUp = await firstToGiveUp(context.kept, stop)
    if (gaveUp === null) return 0
    throw new Error(gaveUp)
  } catch (error) {
    if (stop.aborted) return 0
    printError(error instanceof Error ? error.message : String(error))
    printError(`more may be in ${logPathOf(settings.dataDir)}`)
    return 1
  } finally {
    print('Stopping. Units keep running.')
    for (const part of context.kept.toReversed()) await part.stop()
    await close()
  }
}

/** Throws a sentence if something prevents a start, before anything is started. */
async function prepare(settings: Config, stop: AbortSignal) {
  await refuseBrokenHost(settings)
  await mkdir(settings.dataDir, { recursive: true })
  await chmod(settings.dataDir, 0o711)
  const lock = await lockDataDirectory(settings.dataDir)
  await refuseOtherRole(settings)
  const claimed = await claimPorts(settings)
  const membership = claimed.role === 'host' ? await joinAtStart(claimed) : null
  const instance = await loadInstance(claimed.dataDir)
  const runDir = runDirOf(instance)
  const config = withLink(claimed, membership, runDir)
  const runLock = await lockRunDirectory(instance, config.dataDir)
  await prepareProcessDirectories(config.dataDir, runDir)
  const logFile = await openLogFile(config.dataDir)
  const context: Context = {
    input: {
      config,
      instance,
      runDir,
      needsKey: (await readCredentials(config.dataDir)) === null,
    },
    databaseUrls: databaseUrls(config, runDir),
    logFile: logFile.descriptor,
    log: createLog('supervisor', config.logLevel, logFile.descriptor),
    stop,
    membership,
    kept: [],
    needed: new Set(),
  }
  const close = async () => {
    await removeUnusedRunDir(config.dataDir, runDir)
    await logFile.close()
    await runLock.release()
    await lock.release()
  }
  return { context, close }
}

/** Of a host: where its gateway finds the server. */
function withLink(config: Config, membership: Membership | null, runDir: string): Config {
  if (!membership?.link) return config
  const identityFile = identityFileIn(stateDirOf('gateway', config.dataDir, runDir))
  return { ...config, serverLink: { ...membership.link, identityFile } }
}

async function removeUnusedRunDir(dataDir: string, runDir: string): Promise<void> {
  const machines = await readdir(join(dataDir, 'machines')).catch(() => [])
  if (machines.length === 0) await removeRunDirectory(runDir)
}

/** A database of the operator has a single role; the embedded one has one for each process. */
export function databaseUrls({ databaseUrl }: Config, runDir: string): Context['databaseUrls'] {
  if (databaseUrl !== null) return { berth: databaseUrl, berth_gateway: databaseUrl }
  const socketDir = postgresSocketDir(runDir)
  return { berth: postgresUrl(socketDir, 'berth'), berth_gateway: postgresUrl(socketDir, 'berth_gateway') }
}

/** `engine` null: a server without one. */
async function startAll(context: Context): Promise<{ engine: EngineReady | null; credentials: Credentials }> {
  const { input } = context
  const warm = warmUp(context)
  if (input.config.databaseUrl === null) {
    print('Starting Postgres')
    await keep(context, postgresPart(context))
  }
  await warm
  const credentials = await migrate(context)

  const engine = input.config.role === 'server' ? null : await keepEngine(context)
  print('Starting the server')
  await keepFleetIdentities(context)
  await keepRole(context, 'server')
  if (!engine) return { engine, credentials }
  print('Starting the gateway')
  await keepGateway(context)
  return { engine, credentials }
}

/** One of several servers: which one leads they settle in the database, which that one prepares. */
async function startBesideOthers(context: Context): Promise<void> {
  const { config, instance, runDir } = context.input
  const databaseUrl = context.databaseUrls.berth
  await warmUp(context)
  print('Starting the server')
  const prepareIdentity = async () => await prepareIdentityOf('server', config, instance.id)
  await shareKeysFromPod(config, async () => void (await prepareIdentity()))
  renewing(context, await prepareIdentity())
  await keep(context, renewalsPart({ config, runDir, databaseUrl, log: context.log }))
  const keys = keysPart({ config, log: context.log })
  if (keys) await keep(context, keys)
  const start = async (signal: AbortSignal): Promise<Running> => {
    const beside = whileLeading(kubernetesPart({ config, databaseUrl, log: context.log }), context)
    const server = await startOnce(context, 'server', signal, {}, beside.begin)
    const ended = server.ended.then(async (how) => await beside.end().then(() => how))
    return { ended, stop: async () => await beside.end().then(async () => await server.stop()) }
  }
  await keep(context, { name: 'server', start })
}

async function keepEngine(context: Context): Promise<EngineReady> {
  print('Starting the engine')
  return engineReadySchema.parse(await keepRole(context, 'engine'))
}

/** Only with other hosts are there any. */
async function keepFleetIdentities(context: Context): Promise<void> {
  const { input, databaseUrls, log } = context
  const { config, instance, runDir } = input
  if (!config.hostsAddress) return
  renewing(context, await prepareIdentityOf('server', config, instance.id))
  if (config.gatewayHandover) renewing(context, await prepareIdentityOf('gateway', config, instance.id))
  await keep(context, renewalsPart({ config, runDir, databaseUrl: databaseUrls.berth, log }))
  const kubernetes = kubernetesPart({ config, databaseUrl: databaseUrls.berth, log })
  if (kubernetes) await keep(context, kubernetes)
}

function renewing({ log, stop }: Context, kept: KeptCertificate): void {
  kept.keep({ log, signal: stop }).catch((error: unknown) => {
    log.error({ err: error }, 'certificate renewal stopped')
  })
}

/** Its server is on another machine. */
async function startHost(context: Context): Promise<EngineReady> {
  const { config } = context.input
  await warmUp(context)
  const engine = await keepEngine(context)
  if (config.serverLink) {
    print('Starting the gateway')
    const file = identityFileIn(keptStateOf(config.dataDir, 'gateway'))
    renewing(context, await showGatewayIdentity(config.dataDir, { file, clock: systemClock }))
    await keepGateway(context)
  }
  return engine
}

async function keepGateway(context: Context): Promise<void> {
  const { input } = context
  const certificate = certificateFileIn(keptStateOf(input.config.dataDir, 'gateway'))
  renewing(context, await prepareCertificate(input.config, certificate, systemClock))
  const of = input.config.gatewayWorkers
  if (of === 1) return void (await keepRole(context, 'gateway'))
  await prepareGatewayDirectory(gatewayDirOf(input.runDir))
  let tickets = newTicketSecret(systemClock.now())
  const makeWorker = (number: number) => (): GatewayWorker => {
    tickets = advanceTicketSecret(tickets, systemClock.now())
    return { number, of, tickets }
  }
  // The first one alone, whose failure to start is the same as the others'.
  await keepRole(context, 'gateway', makeWorker(0))
  const more = Array.from({ length: of - 1 }, (_, index) => makeWorker(index + 1))
  await Promise.all(more.map((make) => keepRole(context, 'gateway', make)))
}

/** Returns a new sign-in link of the database, and a key only if there is none yet. */
async function migrate(context: Context): Promise<Credentials> {
  print('Preparing the database')
  const { config } = context.input
  const machines = await listMachinesAndDisks(config.dataDir)
  const role = await startOnce(context, 'migrate', context.stop, { machines })
  await role.stop()
  const made = migrateReadySchema.parse(role.result)
  const apiKey = made.apiKey ?? (await readCredentials(config.dataDir))?.apiKey
  if (apiKey === undefined) throw new Error('The database has an account, but no key was created for it.')
  const credentials = {
    baseUrl: config.publicUrl,
    apiKey,
    signInUrl: signInUrl(config.publicUrl, made.signInToken),
    // The certificates of visits are those of its hosts.
    caFile: config.role === 'server' ? null : caFileOf(config),
  }
  await writeCredentials(config.dataDir, credentials)
  return credentials
}
