// The units of sessions: one for each, found by its labels, made when its first work comes, destroyed when it has ended.

import { createHash } from 'node:crypto'
import { type Berth, BerthError, type Contract, type Unit } from '../../sdk/src/index.ts'
import { findPrepared } from './prepared.ts'
import type { Tell } from './queue.ts'

export type UnitPlan = {
  image: string
  size: string | undefined
  egress: Contract.EgressAsked
  /** How long a unit may go unused before it sleeps. */
  sleep: string
  /** How long it lives at most. */
  timeToLive: string
  stack: string
  /** The id or the name of a unit that was prepared: those of sessions are copies of it. Null: they are made of the image. */
  copyOf: string | null
}

export type SessionUnits = {
  /** Null if it has none yet. */
  find: (session: string) => Promise<Unit | null>
  /** Resolves with the unit of a session, awake or not; makes it if there is none. `known`: what `find` has found. */
  standing: (session: string, asked: Asked, known?: Unit | null) => Promise<Unit>
  /** Of this environment. */
  list: () => Promise<{ session: string; unit: Unit }[]>
  destroy: (unit: Unit) => Promise<void>
}

/** `key`: of the create. `env`, and `hosts` that it reaches besides: of a unit that is made. */
type Asked = {
  metadata: Record<string, string>
  key: string
  env?: Contract.UnitSpec['env']
  hosts?: string[]
}

export type SessionUnitsOptions = {
  /** A client whose calls have the session in their User-Agent, and so in the audit log. */
  berthFor: (session: string | null) => Berth
  vendor: string
  environment: string
  plan: UnitPlan
  tell: Tell
  /** A controller that leaves waits for no unit. */
  signal: AbortSignal
}

const CLONE_MS = 240_000

export function sessionUnits({
  berthFor,
  vendor,
  environment,
  plan,
  tell,
  signal,
}: SessionUnitsOptions): SessionUnits {
  const labels = { 'berth.agents': vendor, 'berth.environment': environment }
  const say = (session: string, sentence: string) => tell({ kind: 'said', session, sentence })
  const labelsOf = (session: string) => ({ ...labels, 'berth.session': session })

  const find = async (berth: Berth, session: string): Promise<Unit | null> => {
    for await (const unit of berth.units.list({ metadata: labelsOf(session) })) {
      if (unit.state !== 'error') return unit
      await unit.destroy()
    }
    return null
  }

  return {
    find: async (session) => await find(berthFor(session), session),

    async standing(session, { metadata, key, env, hosts = [] }, found) {
      const berth = berthFor(session)
      const known = found === undefined ? await find(berth, session) : found
      if (known) return await known.ready({ signal })
      const { image, size, egress, ...asked } = planOf(plan, metadata)
      const begun = performance.now()
      const every = {
        name: nameOf(vendor, `${environment}/${session}`),
        stack: plan.stack,
        metadata: labelsOf(session),
        idempotencyKey: `agents-${key}`,
        signal,
        ...asked,
      }
      try {
        const source = isCopy(metadata, env) ? await findPrepared(berth, plan) : null
        const unit = await (source
          ? source.fork(every)
          : berth.units.create({ ...every, image, size, env, egress: reaching(egress, hosts) }))
        say(session, `unit ${unit.id} was made in ${Math.round(performance.now() - begun)} ms`)
        await stage(unit, metadata['berth.repo'], (sentence) => say(session, sentence), signal)
        return unit
      } catch (error) {
        // Another controller was faster.
        const isMade = error instanceof BerthError && error.code === 'conflict'
        const made = isMade ? await find(berth, session) : null
        if (made) return await made.ready({ signal })
        throw error
      }
    },

    async list() {
      const found: { session: string; unit: Unit }[] = []
      for await (const unit of berthFor(null).units.list({ metadata: labels })) {
        const session = unit.info.metadata['berth.session']
        if (session !== undefined) found.push({ session, unit })
      }
      return found
    },

    async destroy(unit) {
      await unit.destroy().catch((error: unknown) => {
        if (!(error instanceof BerthError && error.code === 'not_found')) throw error
      })
    },
  }
}

/** What the session asks for, where it asks for something. The key's policy bounds it. */
function planOf(plan: UnitPlan, metadata: Record<string, string>) {
  const image = metadata['berth.image'] ?? plan.image
  const size = metadata['berth.size'] ?? plan.size
  const egress = metadata['berth.egress']
  return {
    image,
    size: size as Contract.UnitSpec['size'],
    egress: egress === undefined ? plan.egress : egressOf(egress),
    sleep: plan.sleep,
    timeToLive: plan.timeToLive,
    atEnd: 'destroy' as const,
  }
}

/** A copy is what its source is: who asks for something else, or needs a placeholder, has a unit of its own making. */
function isCopy(metadata: Record<string, string>, env: Contract.UnitSpec['env'] = {}): boolean {
  const asked = ['berth.image', 'berth.size', 'berth.egress'].some((name) => metadata[name] !== undefined)
  return !asked && Object.keys(env).length === 0
}

function reaching(egress: Contract.EgressAsked, hosts: string[]): Contract.EgressAsked {
  if (hosts.length === 0 || egress.mode === 'open') return egress
  return { ...egress, mode: 'listed', allow: [...(egress.allow ?? []), ...hosts] }
}

/** Of `none`, `open`, or names of hosts with commas. */
export function egressOf(text: string): Contract.EgressAsked {
  if (text === 'none' || text === 'open') return { mode: text, siblings: 'none' }
  const allow = text.split(/[\s,]+/).filter((entry) => entry !== '')
  return { mode: 'listed', allow, siblings: 'none' }
}

/** A repository, cloned beside what the agent makes. That it could not be is told, and the session goes on. */
async function stage(
  unit: Unit,
  repo: string | undefined,
  say: (sentence: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (repo === undefined) return
  if (!/^https:\/\/[A-Za-z0-9.-]+\/[A-Za-z0-9._~/-]+$/.test(repo))
    return say('berth.repo was left out: it must be an https address without a user')
  const name = (repo.split('/').at(-1) ?? '').replace(/\.git$/, '').replace(/^[.-]+/, '') || 'repo'
  const cmd = ['git', 'clone', '--quiet', '--', repo, `/workspace/${name}`]
  const { exitCode, stderr } = await unit.exec(cmd, { timeoutMs: CLONE_MS, signal })
  say(
    exitCode === 0
      ? `the repository was cloned to /workspace/${name}`
      : `the repository was not cloned: ${stderr}`,
  )
}

/** One name for one session, so that two controllers make one unit. */
function nameOf(vendor: string, session: string): string {
  return `${vendor}-${createHash('sha256').update(session).digest('hex').slice(0, 16)}`
}
