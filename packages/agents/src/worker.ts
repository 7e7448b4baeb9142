// A worker of a vendor's own that runs in the unit of its session, for one claim: found or begun, kept awake, followed, ended.

import { createHash } from 'node:crypto'
import type { Contract, OutputPiece, Process, Unit } from '../../sdk/src/index.ts'
import type { Claim } from './claim.ts'
import type { Tell } from './queue.ts'

export type Following = {
  write: (piece: OutputPiece) => Promise<void>
  tell: Tell
  signal: AbortSignal
  /** Whether the worker is ended when the signal aborts, by TERM and where that is not enough KILL; else it runs on. */
  isEnded: boolean
}

/** In the unit's memory: no disk and no copy of one has it. */
const TOKEN_FILE = '/dev/shm/berth-session-token'
const WITH_TOKEN = 'umask 077 && cat >"$BERTH_SESSION_TOKEN_FILE" && exec "$@" </dev/null'

/** How long a worker may take to end, and how often it is looked at meanwhile. The vendors' own take up to thirty seconds. */
const GRACE_MS = { most: 35_000, each: 200 }
/** A worker waits for its model without any use of the unit. The service keeps it awake for an hour at most. */
const AWAKE_MS = { for: 3_600_000, each: 1_500_000 }

/** The environment of a unit that is made for a claim: the placeholder of its token. */
export function envOf({ token, brokered }: Claim): Contract.UnitSpec['env'] {
  if (token === null || brokered === null) return {}
  const { variable, ...requests } = brokered
  return { [variable]: { secret: variable, value: token, ...requests } }
}

/** Of a claim whose unit is there: its token takes the place of the one before. */
export async function putToken(unit: Unit, { token, brokered }: Claim): Promise<void> {
  if (token === null || brokered === null) return
  const { variable, placeholder: _, ...requests } = brokered
  await unit.setSecret(variable, { value: token, ...requests })
}

/** Begins the worker of a claim, or finds the one that an earlier call has begun, and follows it. Resolves with its exit code; null: it was lost. */
export async function runWorker(unit: Unit, claim: Claim, following: Following): Promise<number | null> {
  const { session } = claim
  const { tell } = following
  const { process, isNew } = await workerOf(unit, claim, (sentence) =>
    tell({ kind: 'said', session, sentence }),
  )
  tell({
    kind: 'begun',
    session,
    sentence: `the worker ${isNew ? 'has begun' : 'of before goes on'} in unit ${unit.id}`,
    unitId: unit.id,
  })
  // What the worker of an earlier call printed, that call has passed on.
  return await followWorker(process, isNew ? 0 : process.info.output.to, session, following)
}

/** The one that runs; null if none does. */
export async function runningWorker(unit: Unit): Promise<Process | null> {
  return (await workersOf(unit)).find(({ state }) => state === 'running') ?? null
}

export async function followWorker(
  process: Process,
  after: number,
  session: string,
  { write, tell, signal, isEnded }: Following,
): Promise<number | null> {
  const say = (sentence: string) => tell({ kind: 'said', session, sentence })
  const end = () =>
    void endWorker(process).catch((error: unknown) => say(`it was not ended: ${String(error)}`))
  if (isEnded && signal.aborted) end()
  if (isEnded) signal.addEventListener('abort', end)
  const renewing = setInterval(() => {
    process.keepAwake(AWAKE_MS.for).catch((error: unknown) => say(`it was not kept awake: ${String(error)}`))
  }, AWAKE_MS.each)
  try {
    const until = isEnded ? {} : { signal }
    for await (const piece of process.follow({ after, ...until })) await write(piece)
    return process.exitCode
  } finally {
    clearInterval(renewing)
    signal.removeEventListener('abort', end)
  }
}

const workersOf = async (unit: Unit) =>
  (await unit.processes.list()).filter(({ info }) => info.tag?.startsWith('worker-'))

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
  const workers = await workersOf(unit)
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
