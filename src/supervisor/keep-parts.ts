// Starts the parts of a service and keeps them: each once, again when it ends, in a group with its settings (supervisor.ts).

import { existsSync } from 'node:fs'
import { withoutSecrets } from '../config.ts'
import { systemClock } from '../lib/clock.ts'
import type { Role } from '../lib/fleet-settings.ts'
import type { Log } from '../lib/log.ts'
import {
  type GatewayWorker,
  type ProcessInput,
  type ProcessName,
  processNames,
} from '../processes/channel.ts'
import { postgresSocketDir } from './instance.ts'
import type { Membership } from './join/membership.ts'
import { superviseService, type SupervisedService, type Service, type Running } from './restart-policy.ts'
import { startPostgres } from './postgres.ts'
import { compiledDirOf, stateDirOf } from './process-command.ts'
import { type ServiceProcess, startProcess, warmUpProcess } from './start-process.ts'
import { print } from '../lib/terminal.ts'

const processesOf: Record<Role, readonly ProcessName[]> = {
  all: processNames,
  host: ['engine', 'gateway', 'egress'],
  server: ['migrate', 'server'],
}

export type Context = {
  input: Omit<ProcessInput, 'databaseUrl' | 'stateDir' | 'machines' | 'worker' | 'warmUp'>
  /** The connection strings by role: the gateway may only read what routing needs. */
  databaseUrls: { berth: string; berth_gateway: string }
  logFile: number
  log: Log
  stop: AbortSignal
  /** Of a host: where it has joined. */
  membership: Membership | null
  /** The running services, in the order in which they were started. */
  kept: SupervisedService[]
  /** Processes that have been asked for, and are started or being started. */
  needed: Set<ProcessName>
}

/** Returns the result of the first start; later restarts report to no one. */
export async function keepRole(
  context: Context,
  name: ProcessName,
  makeWorker: () => GatewayWorker | null = () => null,
): Promise<unknown> {
  let result: unknown = null
  const start = async (signal: AbortSignal) => {
    const role = await startOnce(context, name, signal, { worker: makeWorker() })
    result = role.result
    return role
  }
  const number = makeWorker()?.number ?? 0
  await keep(context, { name: number === 0 ? name : `${name} ${number}`, start })
  return result
}

export function startOnce(
  context: Context,
  name: ProcessName,
  signal: AbortSignal,
  more: Partial<Pick<ProcessInput, 'machines' | 'worker'>> = {},
  onLeads = () => {},
): Promise<ServiceProcess> {
  const input = { ...inputOf(context, name), ...more }
  return startProcess({
    name,
    input,
    logFile: context.logFile,
    signal,
    onProgress: (text) => print(`  ${text}`),
    onNeeds: (needed) => void startNeeded(context, needed),
    onLeads,
  })
}

/** Starts a process that another one asks for, which asks again for as long as it is not there. */
async function startNeeded(context: Context, name: ProcessName): Promise<void> {
  if (context.needed.has(name) || context.stop.aborted) return
  context.needed.add(name)
  try {
    const start = (signal: AbortSignal) => startOnce(context, name, signal)
    const service = await superviseService(
      { name, start },
      { clock: systemClock, log: context.log, signal: context.stop },
    )
    context.kept.push(service)
    context.log.warn({ why: await service.failed }, 'on-demand process was given up')
    context.kept.splice(context.kept.indexOf(service), 1)
  } catch (error) {
    context.log.error({ part: name, error: String(error) }, 'on-demand process could not be started')
  }
  context.needed.delete(name)
}

/**
 * The first start compiles the code of all processes beforehand, at the same time, so that they use less memory from
 * then on.
 */
export async function warmUp(context: Context): Promise<void> {
  const { role, dataDir } = context.input.config
  const cold = processesOf[role].filter((name) => !existsSync(compiledDirOf(name, dataDir)))
  await Promise.all(cold.map((name) => warmUpProcess(name, inputOf(context, name), context.logFile)))
}

function inputOf({ input, databaseUrls }: Context, name: ProcessName): ProcessInput {
  const { config, runDir } = input
  return {
    ...input,
    config: name === 'server' ? config : withoutSecrets(config),
    // What reads the connections of strangers gets no way to the database.
    databaseUrl: name === 'egress' ? '' : databaseUrls[name === 'gateway' ? 'berth_gateway' : 'berth'],
    stateDir: stateDirOf(name, config.dataDir, runDir),
    machines: [],
    worker: null,
    warmUp: false,
  }
}

export function postgresPart({ input, log }: Context): Service {
  const start = async (): Promise<Running> => {
    const { dataDir } = input.config
    const postgres = await startPostgres({ dataDir, socketDir: postgresSocketDir(input.runDir), log })
    return { ended: postgres.exited.then(() => 'ended'), stop: () => postgres.stop() }
  }
  return { name: 'Postgres', start }
}

export async function keep(context: Context, part: Service): Promise<void> {
  context.kept.push(
    await superviseService(part, { clock: systemClock, log: context.log, signal: context.stop }),
  )
}

/** Returns the sentence of the first service that was given up; null when a stop is requested. */
export async function firstToGiveUp(kept: SupervisedService[], stop: AbortSignal): Promise<string | null> {
  const asked = new Promise<null>((resolve) => {
    if (stop.aborted) resolve(null)
    stop.addEventListener('abort', () => resolve(null), { once: true })
  })
  return await Promise.race([asked, ...kept.map((part) => part.failed)])
}
