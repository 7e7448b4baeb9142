// `berth agents serve`: the sessions of a vendor's hosted agents work in units of this service (docs/guides/hosted-agents.md).

import { readFile } from 'node:fs/promises'
import { atOnceLimits, defaultPlan, serveEnvironment } from '../../../agents/src/environment.ts'
import { type News, QueueRefused } from '../../../agents/src/queue.ts'
import { egressOf, type UnitPlan } from '../../../agents/src/session-units.ts'
import { isVendor, vendors } from '../../../agents/src/vendors.ts'
import { type Args, UsageError } from '../args.ts'
import { connect, type Context, version } from '../context.ts'
import { Failure } from '../failure.ts'
import { clean, note } from '../output.ts'

/** A key is one line. */
const MAX_KEY_BYTES = 8192

export async function serve({ args, signal }: Context): Promise<void> {
  const vendor = args.text('vendor') ?? 'claude'
  if (!isVendor(vendor))
    throw new UsageError(`--vendor is ${Object.keys(vendors).join(' or ')}, and not "${vendor}"`)
  const { open, keyVariable } = vendors[vendor]
  const environmentId = args.text('environment')
  if (environmentId === undefined)
    throw new UsageError('--environment names the environment: --environment env_01AbC')
  const idle = args.text('turn-idle')
  const options = {
    open,
    environmentId,
    environmentKey: await readKey(args.text('key-file'), keyVariable),
    url: args.text('vendor-url'),
    ...(idle !== undefined && { idleMs: secondsOf('turn-idle', idle) }),
    connect: (userAgent: string) => connect(args, userAgent),
    version,
    plan: planOf(args),
    atOnce: atOnceOf(args.text('at-once')),
    tell: ({ session, sentence }: News) =>
      note(
        clean(`${new Date().toISOString()} ${vendor}${session === null ? '' : ` ${session}`}: ${sentence}`),
      ),
    signal,
  }
  try {
    await serveEnvironment(options)
  } catch (error) {
    if (error instanceof QueueRefused) throw new Failure(error.message, { code: 'not_configured' })
    throw error
  }
}

export function planOf(args: Args): UnitPlan {
  return {
    image: args.text('image') ?? defaultPlan.image,
    size: args.text('size'),
    egress: egressOf(args.text('egress') ?? 'none'),
    sleep: args.text('sleep') ?? defaultPlan.sleep,
    timeToLive: args.text('time-to-live') ?? defaultPlan.timeToLive,
    stack: args.text('stack') ?? defaultPlan.stack,
    copyOf: args.text('copy-of') ?? null,
  }
}

/** Returns the one line of a file; null if it has another form. */
export async function readSecretLine(path: string): Promise<string | null> {
  const text = await readFile(path, 'utf8').catch(() => null)
  if (text === null) throw new Failure(`The key could not be read from ${path}.`)
  return lineIn(text)
}

function lineIn(text: string): string | null {
  const key = text.trim()
  return key === '' || key.length > MAX_KEY_BYTES || !/^[!-~]+$/.test(key) ? null : key
}

async function readKey(path: string | undefined, variable: string): Promise<string> {
  const key = path === undefined ? lineIn(process.env[variable] ?? '') : await readSecretLine(path)
  if (key === null) {
    throw new Failure(`An environment key is one line, from --key-file or ${variable}.`, {
      hint: 'berth agents serve --environment env_01AbC --key-file KEY_FILE',
      code: 'not_configured',
    })
  }
  return key
}

function atOnceOf(text: string | undefined): number {
  if (text === undefined) return atOnceLimits.default
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= atOnceLimits.most) return count
  throw new UsageError(`--at-once is a number from 1 to ${atOnceLimits.most}`)
}

function secondsOf(name: string, text: string): number {
  const seconds = Number(text)
  if (Number.isFinite(seconds) && seconds >= 1 && seconds <= 3600) return seconds * 1000
  throw new UsageError(`--${name} is a number of seconds from 1 to 3600`)
}
