// The one wrapper around every operation: authenticate, begin the audit row, limit the rate, read and
// validate, run, close the audit row, answer. Whatever happens between the row's beginning and its close
// (a refusal, a fault, a caller that goes away) ends in exactly one row.

import type { App } from '../app.ts'
import { type AppError, forbidden } from '../contract/errors.ts'
import { agentOf, agentTitled } from '../contract/known-agents.ts'
import {
  type AuditedCall,
  type AuditTrail,
  type CallOrigin,
  createAuditTrail,
  type Via,
} from '../domain/audit/audit.ts'
import { resolveActingTeam } from '../domain/credentials/acting-team.ts'
import {
  type Authenticate,
  createAuthenticate,
  isOurBearer,
  type Presented,
} from '../domain/credentials/authenticate.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import { createFailedAttempts, type FailedAttempts } from '../domain/credentials/failed-attempts.ts'
import { createRateLimits, type RateLimits } from '../domain/credentials/rate-limit.ts'
import { tellBoundMet } from '../lib/bound-met.ts'
import { SECOND } from '../lib/clock.ts'
import { type CallKind, type CallsAtOnce, createCallsAtOnce } from './calls-at-once.ts'
import { callerGone, toAppError } from './http/errors.ts'
import type { Prepared, RawInput, Route } from './route.ts'
import type { EventStream } from './http/sse.ts'

/** One request, free of the framework that brought it. */
export type OperationRequest = {
  requestId: string
  route: Route
  params: unknown
  query: unknown
  readBody: () => Promise<Buffer>
  presented: Presented
  /** The address of who asks. */
  peer: string
  /** Whether a session may ask for this: a key need not say where it is used. */
  fromOwnPages: boolean
  wantsStream: boolean
  lastEventId: string | null
  stripeSignature: string | null
  /** The header's value or values, null without one; routes that do not take it ignore it. */
  idempotencyKey: unknown
  /** Where the input is made of something else than params, query and body: asked once the rate is spent. */
  inputFor?: (caller: Caller) => Promise<RawInput>
  /** What brought it, where that is not this API itself; it says who calls more surely than a header. */
  client?: Pick<CallOrigin, 'via'> & Partial<CallOrigin>
  /** Aborts when the caller goes away, the server stops, or `abort` says so. */
  signal: AbortSignal
  abort: (reason: AppError) => void
  /** Calls back once the answer has left, or nobody can be answered any more. */
  onceAnswered: (callback: () => void) => void
  markReplayed: () => void
}

/** How the answer leaves. `stream` resolves or throws when the stream has ended. */
export type Reply = {
  json: (status: number, body: unknown) => void
  stream: (stream: EventStream) => Promise<void>
}

export type Operations = {
  run(request: OperationRequest, reply: Reply): Promise<void>
  /** Who calls, for whoever brings several operations with one request. Throws as `run` does, and counts failures. */
  authenticate(request: Pick<OperationRequest, 'presented' | 'peer'>): Promise<Caller>
  /** The same as `run` for a caller that `authenticate` answered. */
  runAs(caller: Caller, request: OperationRequest, reply: Reply): Promise<void>
  /** Resolves when those that have begun have ended, also such as nobody waits for any more. */
  ended(): Promise<void>
}

const RECHECK_EVERY_MS = 4 * SECOND

type Gate = {
  app: App
  callsAtOnce: CallsAtOnce
  authenticate: Authenticate
  attempts: FailedAttempts
  rates: RateLimits
  audit: AuditTrail
}

export function createOperations(app: App): Operations {
  const gate: Gate = {
    app,
    callsAtOnce: createCallsAtOnce(app),
    authenticate: createAuthenticate(app),
    attempts: createFailedAttempts(app),
    rates: createRateLimits(app),
    audit: createAuditTrail(app),
  }
  const underWay = new Set<Promise<void>>()
  const counted = async (running: Promise<void>) => {
    underWay.add(running)
    try {
      await running
    } finally {
      underWay.delete(running)
    }
  }
  return {
    run: async (request, reply) =>
      await counted((request.route.auth === 'none' ? runOpen : runFor)(gate, request, reply)),
    authenticate: async (request) => await authenticate(gate, request),
    runAs: async (caller, request, reply) => await counted(runForCaller(gate, caller, request, reply)),
    ended: async () => void (await Promise.allSettled(underWay)),
  }
}

async function runFor(gate: Gate, request: OperationRequest, reply: Reply): Promise<void> {
  await runForCaller(gate, await authenticate(gate, request), request, reply)
}

async function runForCaller(
  gate: Gate,
  caller: Caller,
  request: OperationRequest,
  reply: Reply,
): Promise<void> {
  const call = gate.audit.begin(caller, {
    requestId: request.requestId,
    action: request.route.action,
    via: viaOf(caller),
    ...agentBehind(request.presented.userAgent, caller),
    ...request.client,
  })
  await runAudited(gate, caller, call, request, reply)
}

/** Without a caller there is no row to write; whoever asks for what is not there is limited as one who guesses keys. */
async function runOpen({ app, attempts }: Gate, request: OperationRequest, reply: Reply): Promise<void> {
  const { route, peer } = request
  // Where there is nothing to guess, nobody is held up by those who guess: events of the payment provider come here.
  const isGuessable = route.path.includes('{')
  if (isGuessable) attempts.check(peer, '')
  try {
    const prepared = route.prepare(await readInput(request))
    const answered = await prepared.run(app, request, null)
    if (answered.kind === 'stream') await reply.stream(answered.stream)
    else reply.json(route.status, answered.body)
  } catch (error) {
    if (isGuessable && toAppError(error).status === 404) attempts.failed(peer)
    throw error
  }
}

async function authenticate(
  { authenticate, attempts }: Gate,
  request: Pick<OperationRequest, 'presented' | 'peer'>,
): Promise<Caller> {
  const shown = request.presented.authorization ?? request.presented.sessionToken ?? ''
  const refusal = attempts.refusalOf(request.peer, shown)
  // A key may be one that works and was not seen before; those that come together are looked up together.
  if (refusal && !isOurBearer(request.presented)) throw refusal
  try {
    const caller = await authenticate(request.presented)
    attempts.succeeded(shown)
    return caller
  } catch (error) {
    if (toAppError(error).status !== 401) throw error
    if (refusal) throw refusal
    attempts.failed(request.peer)
    throw error
  }
}

/** Throws what the caller is to be told, unless it has been answered. */
async function runAudited(
  gate: Gate,
  caller: Caller,
  call: AuditedCall,
  request: OperationRequest,
  reply: Reply,
): Promise<void> {
  const { route } = request
  let answer: () => void = () => {}
  let giveBackCreation: () => Promise<void> = async () => {}
  try {
    const { prepared, acting } = await accept(gate, caller, call, request)
    request.onceAnswered(gate.callsAtOnce.begin(kindOf(request), acting.teamId))
    if (route.rate === 'creations') {
      giveBackCreation = await withinRate(gate, acting, route, () =>
        gate.rates.spendCreation(caller.credentialId),
      )
    }
    if (route.kind === 'change') await call.open()
    const answered = await prepared.run(gate.app, request, acting)
    if (answered.kind === 'stream') {
      await whileAllowed(gate, acting, request, () => reply.stream(answered.stream))
    } else {
      call.result(answered.outcome)
      answer = () => reply.json(route.status, answered.body)
    }
  } catch (error) {
    // Work that was aborted fails in many ways; the caller's going is what happened.
    const known = toAppError(request.signal.aborted ? request.signal.reason : error)
    if (madeNothing(known)) await giveBack(gate, giveBackCreation, request)
    await closeRefused(gate, call, known.status, known.code, request)
    throw known.status === 500 ? error : known
  }
  await call.close({ status: request.signal.aborted ? callerGone().status : route.status, errorCode: null })
  answer()
}

/** Refused for what was asked. A failure, or a caller who went away, may leave something behind, and took work. */
function madeNothing({ status }: AppError): boolean {
  return status >= 400 && status < 499
}

/** Whoever is refused hears of that, whatever becomes of this. */
async function giveBack(
  { app }: Gate,
  giveBackCreation: () => Promise<void>,
  { requestId }: OperationRequest,
): Promise<void> {
  try {
    await giveBackCreation()
  } catch (error) {
    app.log.warn({ err: error, requestId }, 'a creation that was refused could not be given back')
  }
}

function kindOf({ route, wantsStream }: OperationRequest): CallKind {
  if (route.rate === 'execs') return 'command'
  return wantsStream ? 'stream' : 'call'
}

/** The checks that come before anything happens. */
async function accept(
  gate: Gate,
  caller: Caller,
  call: AuditedCall,
  request: OperationRequest,
): Promise<{ prepared: Prepared; acting: Caller }> {
  const { route } = request
  call.describe({ target: route.targetOf(request.params), input: null, teamId: caller.teamId })
  if (caller.kind === 'session' && !request.fromOwnPages) {
    throw forbidden('A session can be used from the pages of this service only; elsewhere use an API key.')
  }
  await withinRate(gate, caller, route, () => gate.rates.spend(caller.credentialId, route.rate))
  const prepared = route.prepare(await (request.inputFor?.(caller) ?? readInput(request)))
  const { target, record: input, team } = prepared
  call.describe({ target, input, teamId: caller.teamId })
  if (team === null) return { prepared, acting: caller }
  const acting = await resolveActingTeam(gate.app, caller, team)
  call.describe({ target, input, teamId: acting.teamId })
  return { prepared, acting }
}

/** Whoever goes on beyond his rate is told of to the operator. */
async function withinRate<T>(
  { app }: Gate,
  { teamId }: Caller,
  { rate }: Route,
  spend: () => Promise<T>,
): Promise<T> {
  try {
    return await spend()
  } catch (error) {
    if (toAppError(error).status === 429) tellBoundMet(app, { bound: `${rate} a minute`, by: teamId })
    throw error
  }
}

async function readInput({ params, query, idempotencyKey, readBody }: OperationRequest): Promise<RawInput> {
  return { params, query, idempotencyKey, body: await readBody() }
}

/** A stream can outlive its credential, or a membership: it ends within seconds of it (reliability S5, S26). */
async function whileAllowed(
  gate: Gate,
  caller: Caller,
  request: OperationRequest,
  work: () => Promise<void>,
): Promise<void> {
  const done = new AbortController()
  const watching = endWithCredential(gate, caller, request, done.signal)
  try {
    await work()
  } finally {
    done.abort()
    await watching
  }
}

async function endWithCredential(
  gate: Gate,
  { teamId }: Caller,
  request: OperationRequest,
  done: AbortSignal,
): Promise<void> {
  // The team the stream began in, not the one the session acts in by now.
  const presented = { ...request.presented, team: teamId }
  while (!done.aborted && !request.signal.aborted) {
    try {
      await gate.app.clock.sleep(RECHECK_EVERY_MS, done)
      await gate.authenticate(presented, { underWay: true })
    } catch (error) {
      const known = toAppError(error)
      if (!done.aborted && (known.status === 401 || known.status === 403)) request.abort(known)
    }
  }
}

/** A trail that cannot be written must not hide from the caller why it was refused. */
async function closeRefused(
  { app }: Gate,
  call: AuditedCall,
  status: number,
  errorCode: string,
  { requestId }: OperationRequest,
): Promise<void> {
  try {
    await call.close({ status, errorCode })
  } catch (error) {
    app.log.error({ err: error, requestId, status }, 'an audit row could not be written')
  }
}

/** Programs often call with the name of a library alone; a connected one has told its own. */
function agentBehind(
  userAgent: string | null,
  { clientName }: Caller,
): Pick<CallOrigin, 'agentName' | 'agentVersion' | 'userAgent'> {
  const agent = agentOf(userAgent) ?? agentTitled(clientName)
  return { agentName: agent?.name ?? null, agentVersion: agent?.version ?? null, userAgent }
}

function viaOf(caller: Caller): Via {
  return caller.kind === 'session' ? 'dashboard' : 'api'
}
