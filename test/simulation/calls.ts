// Calls of API callers, as data that can be drawn, printed and made.

import type { App } from '../../src/app.ts'
import type { Caller } from '../../src/domain/credentials/caller.ts'
import { forkStack } from '../../src/domain/forks/fork-stack.ts'
import { forkUnit } from '../../src/domain/forks/fork-unit.ts'
import { destroyStack } from '../../src/domain/stacks/destroy.ts'
import { createUnits } from '../../src/domain/units/create.ts'
import { destroyUnit } from '../../src/domain/units/destroy.ts'
import { execInUnit } from '../../src/domain/units/exec.ts'
import { readFile, writeFile } from '../../src/domain/units/files.ts'
import { getUnit } from '../../src/domain/units/get.ts'
import { listUnits } from '../../src/domain/units/list.ts'
import { sleepUnit } from '../../src/domain/units/sleep.ts'
import { startUnit } from '../../src/domain/units/start.ts'
import { stopUnit } from '../../src/domain/units/stop.ts'
import { createBody } from '../support/domain.ts'
import type { Life } from './gates.ts'

/** The kinds of units. */
export const specs = {
  plain: {},
  /** A unit with a volume, which costs awake or asleep. */
  keeping: { volume: { mount: '/keep', gb: 3 } },
  /** A unit that is ready some time after its process has started. */
  checked: { healthcheck: { cmd: ['true'], intervalMs: 500, timeoutMs: 5_000 } },
  /** A unit that is never ready. */
  sick: { healthcheck: { cmd: ['false'], intervalMs: 500, timeoutMs: 3_000 } },
  /** A unit whose process exits by itself. */
  brief: { entrypoint: ['sleep', '45'] },
  /** A unit whose process cannot be started. */
  broken: { entrypoint: ['/no-such'] },
} as const

export const paths = ['/data/a', '/data/b'] as const

/** A call before it is made. `unit` is an index into the units, live ones first, modulo their number. */
export type Wish =
  | { call: 'create'; name: string; stack: string; spec: keyof typeof specs; sleep: string; wait: boolean }
  | { call: 'start' | 'stop' | 'destroy' | 'get'; unit: number }
  /** The stack is that of the unit. */
  | { call: 'fork'; unit: number; name: string | undefined; stack: string | undefined; wait: boolean }
  | { call: 'fork a stack'; unit: number; into: string | undefined; wait: boolean }
  | { call: 'destroy a stack'; unit: number }
  | { call: 'exec'; unit: number; forS: number }
  | { call: 'write' | 'read'; unit: number; path: (typeof paths)[number] }
  | { call: 'sleep'; unit: number; sleep: string; stack: boolean; now: boolean }
  | { call: 'list' }

/** A call that was made. */
export type Call = {
  number: number
  what: Wish['call']
  unitId: string | null
  life: Life
  /** By the wall clock, and by the monotonic one. */
  askedMs: number
  beganMs: number
  path: string
  content: string
  /** The moment of the file’s history at which a read began. */
  readFrom: number
  /** The number of states that its unit had been in when the call was made. */
  statesBefore: number
  /** A sleep with `now`. */
  now: boolean
  /** A start was answered while a stop was in progress, so their order is unknown. */
  wasStarted: boolean
  isUse: boolean
  outcome: Outcome | null
}

export type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown }

export function isUse({ call }: Wish): boolean {
  return call === 'start' || call === 'exec' || call === 'write' || call === 'read'
}

/** Makes the call, and returns what the reference compares: for a read, the content. */
export async function make(app: App, caller: Caller, wish: Wish, call: Call): Promise<unknown> {
  const id = call.unitId ?? ''
  switch (wish.call) {
    case 'create': {
      const { name, stack, spec, sleep, wait } = wish
      return await createUnits(app, caller, createBody({ name, sleep, ...specs[spec] }, { stack, wait }))
    }
    case 'fork': {
      const { name, stack, wait } = wish
      const body = { name, stack, wait, waitTimeoutMs: 120_000 }
      return await forkUnit(app, caller, id, body)
    }
    case 'fork a stack': {
      const { into, wait } = wish
      const { stackId } = await getUnit(app, caller, id)
      return await forkStack(app, caller, stackId, { into, wait, waitTimeoutMs: 120_000 })
    }
    case 'destroy a stack':
      return await destroyStack(app, caller, (await getUnit(app, caller, id)).stackId)
    case 'start':
      return await startUnit(app, caller, id)
    case 'stop':
      return await stopUnit(app, caller, id)
    case 'destroy':
      return await destroyUnit(app, caller, id)
    case 'get':
      return await getUnit(app, caller, id)
    case 'exec':
      return await execInUnit(app, caller, id, { cmd: ['sleep', `${wish.forS}`], timeoutMs: 100_000 })
    case 'write':
      return await writeFile(app, caller, id, call.path, Buffer.from(call.content))
    case 'read': {
      const { contentBase64 } = await readFile(app, caller, id, call.path)
      return Buffer.from(contentBase64, 'base64').toString()
    }
    case 'sleep': {
      const { sleep, stack, now } = wish
      return await sleepUnit(app, caller, id, { sleep, stack, now })
    }
    case 'list':
      return await listUnits(app, caller, { all: true, limit: 10 })
  }
}

export function describeWish({ call, ...rest }: Wish, unitId: string | null): string {
  const details = Object.entries(rest).filter(([name]) => name !== 'unit')
  return [call, unitId ?? '', ...details.map(([name, value]) => `${name} ${value}`)].join(' ')
}

export function describeOutcome(outcome: Outcome): string {
  return outcome.ok ? 'is answered' : `fails: ${describeError(outcome.error)}`
}

export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error ? `${String(error.code)}: ${error.message}` : error.message
}
