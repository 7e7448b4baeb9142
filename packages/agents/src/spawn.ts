// One claim of a controller that starts a program for each: the unit of the session is found, made or woken, the vendor's worker
// runs in it to its end, and the unit sleeps, or goes (docs/guides/hosted-agents.md).

import { createHash } from 'node:crypto'
import { type OutputPiece, type Process, type Unit } from '../../sdk/src/index.ts'
import type { Tell } from './queue.ts'
import type { SessionUnits } from './session-units.ts'

export type Claim = {
  session: string
  /** The worker, as the unit runs it. */
  cmd: readonly string[]
  env: Record<string, string>
  /** A credential for this claim alone; null if there is none. */
  token: string | null
  /** The unit has a placeholder in this variable, and the token goes to these hosts; null: a file in its memory has the token. */
  brokered: { variable: string; hosts: string[] } | null
}

export type SpawnOptions = {
  units: SessionUnits
  claim: Claim
  /** Whether the unit goes when the worker has ended; else it sleeps, and wakes again after this window. */
  after: 'destroy' | { sleep: string }
  write: (piece: OutputPiece) => Promise<void>
  tell: Tell
  /** Ends the worker: TERM, and KILL where that is not enough. */
  signal: AbortSignal
}

/** In the unit's memory: no disk and no copy of one has it. */
const TOKEN_FILE = '/dev/shm/berth-session-token'
const WITH_TOKEN = 'umask 077 && cat >"$BERTH_SESSION_TOKEN_FILE" && exec "$@" </dev/null'

/** How long a worker may take to end, and how often it is looked at meanwhile. */
const GRACE_MS = { most: 20_000, each: 200 }
/** A worker waits for its model without any use of the unit. The service keeps it awake for an hour at most. */
const AWAKE_MS = { for: 3_600_000, each: 1_500_000 }

/** Resolves with the worker's exit code; null if it was lost with its unit. */
export async function spawnWorker(options: SpawnOptions): Promise<number | null> {
  const { units, claim, tell, signal } = options
  const { session, token, brokered } = claim
  signal.throwIfAborted()
  const isBrokered = token !== null && brokered !== null
  const env = isBrokered
    ? { [brokered.variable]: { secret: brokered.variable, value: token, hosts: brokered.hosts } }
    : {}
  const unit = await units.standing(session, { metadata: {}, key: crypto.randomUUID(), env })
  if (isBrokered) await unit.setSecret(brokered.variable, { value: token, hosts: brokered.hosts })
  try {
    return await runWorker(unit, options)
  } finally {
    await leave(unit, options).catch((error: unknown) =>
      tell({
        kind: 'said',
        session,
        sentence: `unit ${unit.id} was left as it is: ${String(error)}`,
      }),
    )
  }
}

async function runWorker(unit: Unit, { claim, write, tell, signal }: SpawnOptions): Promise<number | null> {
  const say = (sentence: string) => tell({ kind: 'said', session: claim.session, sentence })
  const { process, isNew } = await workerOf(unit, claim, say)
  tell({
    kind: 'begun',
    session: claim.session,
    sentence: `the worker ${isNew ? 'has begun' : 'of before goes on'} in unit ${unit.id}`,
    unitId: unit.id,
  })
  const end = () =>
    void endWorker(process).catch((error: unknown) => say(`it was not ended: ${String(error)}`))
  if (signal.aborted) end()
  signal.addEventListener('abort', end)
  const renewing = setInterval(() => {
    process.keepAwake(AWAKE_MS.for).catch((error: unknown) => say(`it was not kept awake: ${String(error)}`))
  }, AWAKE_MS.each)
  try {
    // What the worker of an earlier call printed, that call has passed on.
    const from = isNew ? 0 : process.info.output.to
    for await (const piece of process.follow({ after: from })) await write(piece)
    return process.exitCode
  } finally {
    clearInterval(renewing)
    signal.removeEventListener('abort', end)
  }
}

/** The worker of this claim, if a call before this one began it and was killed, or a new one. Workers of other claims are ended. */
async function workerOf(
  unit: Unit,
  { session, cmd, env, token, brokered }: Claim,
  say: (sentence: string) => void,
): Promise<{ process: Process; isNew: boolean }> {
  // It tells whether a token is the same, and nothing of it.
  const tag = `worker-${createHash('sha256')
    .update(`${session}\0${token ?? ''}`)
    .digest('hex')
    .slice(0, 16)}`
  const workers = (await unit.processes.list()).filter(({ info }) => info.tag?.startsWith('worker-'))
  const known = workers.filter(({ info }) => info.tag === tag)
  const running = known.find(({ state }) => state === 'running')
  if (running) return { process: await running.keepAwake(AWAKE_MS.for), isNew: false }
  for (const other of workers)
    if (other.state === 'running') {
      say(`the worker of an earlier claim is ended`)
      await endWorker(other)
    }
  const hasFile = token !== null && brokered === null
  const process = await unit.processes.start(hasFile ? ['sh', '-c', WITH_TOKEN, 'sh', ...cmd] : cmd, {
    tag,
    keepsAwake: true,
    env: { BERTH_SESSION: session, ...(hasFile && { BERTH_SESSION_TOKEN_FILE: TOKEN_FILE }), ...env },
    ...(hasFile && { stdin: token }),
    // Of two calls at the same time one begins it.
    idempotencyKey: `${tag}-${unit.id}-${known.at(-1)?.id ?? 'first'}`,
  })
  return { process, isNew: true }
}

async function endWorker(process: Process): Promise<void> {
  await process.signal('TERM')
  for (let ms = 0; ms < GRACE_MS.most; ms += GRACE_MS.each) {
    await new Promise((resolve) => setTimeout(resolve, GRACE_MS.each))
    if ((await process.refresh()).state !== 'running') return
  }
  await process.signal('KILL')
}

async function leave(unit: Unit, { units, after }: SpawnOptions): Promise<void> {
  if (after === 'destroy') await units.destroy(unit)
  else await unit.sleep(after.sleep, { now: true })
}
