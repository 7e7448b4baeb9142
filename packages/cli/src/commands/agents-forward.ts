// `berth agents forward`: one environment of OpenAI's Agents API, or of another Codex, works in a unit of its own. Codex's own
// forwarder runs here, holds the relay with the environment's key, and connects to the unit when there is work
// (docs/guides/codex-elsewhere.md).

import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { type Berth, BerthError, type Unit } from '@berth/sdk'
import { codex as relay } from '../../../agents/src/codex.ts'
import { openDoor } from '../../../agents/src/relay-door.ts'
import type { RelayCall } from '../../../agents/src/relay.ts'
import { createCallReport } from '../../../agents/src/relay-report.ts'
import { egressOf } from '../../../agents/src/session-units.ts'
import { pairs, UsageError } from '../args.ts'
import { connect, type Context, version } from '../context.ts'
import { Failure } from '../failure.ts'
import { clean, note } from '../output.ts'
import { planOf, readSecretLine } from './agents.ts'
import { valueOf } from './recipe.ts'

const { vendor, callIn } = relay
/** How long a first start may install what serves the protocol. */
const READY_MS = 300_000
/** Of the log of calls: how often there is a line, and how many methods one has at most. */
const LOG_MS = 1000
const LOGGED = 20
/** How long a report of calls may take. */
const TOLD_MS = 10_000
/** Answers that no repetition changes. */
const REFUSED = new Set([400, 403, 404, 413])
/** How long the forwarder may take to end. */
const GRACE_MS = 5000

export async function forward(context: Context): Promise<number> {
  const { args, signal } = context
  const [id, remote, file] = [args.text('environment'), args.text('remote'), args.text('key-file')]
  if (id === undefined || !/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(id))
    throw new UsageError('--environment is the id of the environment: --environment env_01AbC')
  if (remote === undefined || file === undefined)
    throw new UsageError('--remote is the address to register at, and --key-file has the key for it')
  const key = await readSecretLine(file)
  if (key === null) throw new Failure(`The key in ${file} is not one line.`)
  const berth = connect(args, `berth-agents/${version} ${vendor}/${id}`)
  const unit = await standing(berth, context, id)
  note(clean(`environment ${id} works in unit ${unit.id}, of which ${relay.program} holds the relay`))
  const calls = createCallLog(id)
  const report = reportOf(unit, id)
  const onCall = (call: RelayCall) => {
    calls.count(call.method)
    report.add(call)
  }
  const door = await openDoor(addressOf(unit), { callIn, onCall })
  try {
    return await runForwarder(args.text('codex') ?? relay.program, { id, remote, key, url: door.url, signal })
  } finally {
    await door.close()
    calls.end()
    await report.end()
    if (args.flag('rm')) await unit.destroy()
  }
}

/** The unit of the environment, which is made if there is none. */
async function standing(berth: Berth, { args, signal }: Context, id: string): Promise<Unit> {
  const metadata = { 'berth.agents': vendor, 'berth.environment': id }
  for await (const unit of berth.units.list({ metadata, signal })) if (unit.state !== 'error') return unit
  const { stack, sleep, timeToLive, egress } = planOf(args)
  const params = Object.entries(pairs(args.list('set'))).map(([name, value]) => [name, valueOf(value)])
  const { unit } = await berth.recipes.run<string>(relay.recipe, {
    name: `${vendor}-${createHash('sha256').update(id).digest('hex').slice(0, 16)}`,
    params: Object.fromEntries(params) as Record<string, unknown>,
    stack,
    sleep,
    timeToLive,
    metadata,
    signal,
    egress: args.text('egress') === undefined ? egressOf(relay.egress) : egress,
    atEnd: 'destroy',
    expose: 'private',
    waitTimeoutMs: READY_MS,
  })
  return unit
}

/** Into the audit log. While that is away the calls go on, and are told later. */
function reportOf(unit: Unit, id: string) {
  const say = (what: string, error: unknown) => note(clean(`${vendor} ${id}: ${what}: ${String(error)}`))
  return createCallReport(
    async (calls) =>
      await unit.tellCalls(calls, { timeoutMs: TOLD_MS }).catch((error: unknown) => {
        // As of a unit that is gone: the same report is refused for ever.
        if (!(error instanceof BerthError && REFUSED.has(error.status ?? 0))) throw error
        say('its calls are not in the audit log', error)
      }),
    (error) => say('its calls are not in the audit log yet', error),
  )
}

/** The log of what is called in the unit: a line a second at most, with each method and how often. */
function createCallLog(id: string): { count: (method: string) => void; end: () => void } {
  const counts = new Map<string, number>()
  const write = () => {
    if (counts.size === 0) return
    const calls = [...counts].map(([method, count]) => (count === 1 ? method : `${method} ×${count}`))
    counts.clear()
    note(clean(`${new Date().toISOString()} ${vendor} ${id}: ${calls.slice(0, LOGGED).join(', ')}`))
  }
  const writing = setInterval(write, LOG_MS)
  return {
    count: (method) => void counts.set(method, (counts.get(method) ?? 0) + 1),
    end: () => {
      clearInterval(writing)
      write()
    },
  }
}

/** The private address of its port. Throws `Failure` where somebody has taken that back. */
function addressOf({ id, info: { endpoints } }: Unit): string {
  const url = endpoints.find(({ mode, protocol }) => mode === 'private' && protocol === 'http')?.url
  if (!url) throw new Failure(`Unit ${id} has no private link.`, { hint: `berth url ${id} ${relay.port}` })
  return url.replace(/^http/, 'ws')
}

type Forwarding = { id: string; remote: string; key: string; url: string; signal: AbortSignal }

/** Until it ends, or the signal ends it. Resolves with its exit code. */
async function runForwarder(program: string, { id, remote, key, url, signal }: Forwarding): Promise<number> {
  const words = relay.argsOf({ environment: id, remote, url })
  const child = spawn(program, words, { stdio: ['pipe', 'inherit', 'inherit'] })
  // Its input stays open: where this process is killed, it ends too.
  child.stdin.on('error', () => {})
  child.stdin.write(`${key}\n`)
  const end = () => endChild(child)
  signal.addEventListener('abort', end)
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', () =>
        reject(new Failure(`There is no program "${program}".`, { hint: relay.install })),
      )
      child.once('exit', (code) => resolve(code ?? 1))
      if (signal.aborted) end()
    })
  } finally {
    signal.removeEventListener('abort', end)
  }
}

function endChild(child: ChildProcess): void {
  child.kill('SIGTERM')
  setTimeout(() => child.kill('SIGKILL'), GRACE_MS).unref()
}
