// `berth agents serve`: the sessions of a vendor's hosted agents work in units of this service (docs/guides/hosted-agents.md).

import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Berth } from '@berth/sdk'
import { createClaudeQueue } from '../agents/claude.ts'
import { QueueRefused } from '../agents/queue.ts'
import { serveQueue } from '../agents/serve.ts'
import { sessionUnits } from '../agents/session-units.ts'
import { UsageError } from '../args.ts'
import { connect, type Context, version } from '../context.ts'
import { Failure } from '../failure.ts'
import { clean, note } from '../output.ts'

const AT_ONCE = { default: 8, most: 200 }
const DEFAULT_IMAGE = 'berth.local/agent:1'
/** A key is one line. */
const MAX_KEY_BYTES = 8192

export async function serve(context: Context): Promise<void> {
  const { args, berth, signal } = context
  const vendor = args.text('vendor') ?? 'claude'
  if (vendor !== 'claude') throw new UsageError(`--vendor is claude, and not "${vendor}"`)
  const environmentId = args.text('environment')
  if (environmentId === undefined)
    throw new UsageError('--environment names the environment: --environment env_01AbC')
  const environmentKey = await readKey(args.text('key-file'))
  const idle = args.text('turn-idle')
  const queue = await createClaudeQueue({
    environmentId,
    environmentKey,
    url: args.text('vendor-url'),
    workerId: `berth-${randomUUID()}`,
    ...(idle !== undefined && { idleMs: secondsOf('turn-idle', idle) }),
  })
  // Before the queue is asked for anything, what refuses us is known.
  await berth().units.summary({ signal })
  const clients = new Map<string, Berth>()
  const berthFor = (session: string | null) => {
    const name = session ?? 'controller'
    const client = clients.get(name) ?? connect(args, `berth-agents/${version} ${vendor}/${name}`)
    clients.delete(name)
    clients.set(name, client)
    for (const [oldest] of clients) if (clients.size > 1000) clients.delete(oldest)
    return client
  }
  const log = (session: string | null, sentence: string) =>
    note(clean(`${new Date().toISOString()} ${vendor}${session === null ? '' : ` ${session}`}: ${sentence}`))
  const units = sessionUnits({
    berthFor,
    vendor,
    environment: environmentId,
    plan: {
      image: args.text('image') ?? DEFAULT_IMAGE,
      size: args.text('size'),
      egress: args.text('egress') ?? 'none',
      sleep: args.text('sleep') ?? '1m',
      timeToLive: args.text('time-to-live') ?? '24h',
      stack: args.text('stack') ?? 'agents',
    },
    log,
  })
  log(null, `waiting for sessions of ${environmentId}`)
  try {
    await serveQueue({ queue, units, atOnce: atOnceOf(args.text('at-once')), log, signal })
  } catch (error) {
    if (error instanceof QueueRefused) throw new Failure(error.message, { code: 'not_configured' })
    throw error
  }
}

async function readKey(path: string | undefined): Promise<string> {
  const text =
    path === undefined
      ? process.env['ANTHROPIC_ENVIRONMENT_KEY']
      : await readFile(path, 'utf8').catch(() => null)
  if (text === null) throw new Failure(`The key could not be read from ${path}.`)
  const key = (text ?? '').trim()
  if (key === '' || key.length > MAX_KEY_BYTES || !/^[!-~]+$/.test(key)) {
    throw new Failure('An environment key is one line, from --key-file or ANTHROPIC_ENVIRONMENT_KEY.', {
      hint: 'berth agents serve --environment env_01AbC --key-file KEY_FILE',
      code: 'not_configured',
    })
  }
  return key
}

function atOnceOf(text: string | undefined): number {
  if (text === undefined) return AT_ONCE.default
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= AT_ONCE.most) return count
  throw new UsageError(`--at-once is a number from 1 to ${AT_ONCE.most}`)
}

function secondsOf(name: string, text: string): number {
  const seconds = Number(text)
  if (Number.isFinite(seconds) && seconds >= 1 && seconds <= 3600) return seconds * 1000
  throw new UsageError(`--${name} is a number of seconds from 1 to 3600`)
}
