// The steps of a call, one function each; their order is the list in api/operation.ts. A step throws the error for
// the caller, and returns what later steps need.

import type { Answered, Prepared, RawInput, Route } from '../route.ts'
import { forbidden } from '../../contract/errors.ts'
import { agentOf, agentTitled } from '../../contract/known-agents.ts'
import type { AuditedCall, CallOrigin, Via } from '../../domain/audit/audit.ts'
import { authorize } from '../../domain/authorization/authorize.ts'
import { resolveActingTeam } from '../../domain/credentials/acting-team.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import { allSettled } from '../../lib/concurrency/all-settled.ts'
import { logLimitReached } from '../../lib/limit-reached.ts'
import { callerGone, toAppError } from '../http/errors.ts'
import { EVENT_STREAM } from '../http/sse.ts'
import { authenticateRequest } from './authenticate.ts'
import type { Gate, Incoming, OperationRequest } from './call.ts'
import type { CallKind } from './calls-at-once.ts'
import { whileAllowed } from './credential-watch.ts'
import { costOfBody } from './team-pace.ts'

type WithCaller = Incoming & { caller: Caller; counted: Counted | null }

/** The audit row of a call that has been authenticated. */
export type WithRow = WithCaller & { row: AuditedCall }

type WithInput = WithRow & { prepared: Prepared }

/** `acting`: the caller within the team that the call is about. */
type WithTeam = WithInput & { acting: Caller }

type WithAnswer = WithTeam & { answered: Answered }

const MAX_UNDER_WAY_TO_COUNT_AHEAD = 8

/** A call that is being counted for the credential that it most likely comes with. */
type Counted = { credentialId: string; spent: Promise<void> }

export async function authenticate({
  gate,
  request,
  knownCaller,
}: Incoming): Promise<{ caller: Caller; counted: Counted | null }> {
  if (knownCaller) return { caller: knownCaller, counted: null }
  const counted = countAhead(gate, request)
  return { caller: await authenticateRequest(gate, request), counted }
}

/**
 * Counts the call against the rate while its credential is looked up, so that it waits for the longer of the two only.
 * Just for a whole token that this process has accepted before: who knows less of it cannot use up its rate.
 */
function countAhead(
  { attempts, rates, underWay }: Gate,
  { presented, route }: OperationRequest,
): Counted | null {
  // Many calls go through each statement in groups: then the wait is the same, and this only costs processor time.
  if (underWay() > MAX_UNDER_WAY_TO_COUNT_AHEAD) return null
  const { authorization } = presented
  const credentialId = authorization === null ? null : attempts.acceptedAs(authorization)
  if (credentialId === null) return null
  const spent = rates.spend(credentialId, route.rate)
  // Awaited by `spendRate`, unless the credential is refused.
  spent.catch(() => {})
  return { credentialId, spent }
}

/** From here on the call ends in exactly one row, whatever becomes of it (operation/refusal.ts). */
export function beginAuditRow({ gate, request, caller }: WithCaller): {
  row: AuditedCall
} {
  const { requestId, route, presented, params, client } = request
  const row = gate.audit.begin(caller, {
    requestId,
    action: route.action,
    via: viaOf(caller),
    ...agentBehind(presented.userAgent, caller),
    ...client,
  })
  row.describe({ target: route.targetOf(params), input: null, teamId: caller.teamId })
  return { row }
}

export function refuseForeignPages({ request, caller }: WithRow): void {
  if (caller.kind !== 'session' || request.fromOwnPages) return
  throw forbidden('A session can be used from the pages of this service only; elsewhere use an API key.')
}

export async function spendRate({ gate, request, caller, counted }: WithRow): Promise<void> {
  const { rate } = request.route
  gate.rates.learn(caller.credentialId, caller.policy.rates)
  const spent = counted?.credentialId === caller.credentialId ? counted.spent : null
  await withinRate(gate, caller, rate, () => spent ?? gate.rates.spend(caller.credentialId, rate))
}

/** Before the body is read: what waits then is the sender's, not memory of the service. */
export async function keepPace({ gate, request, caller }: WithRow): Promise<void> {
  const { bodyBytes, signal } = request
  await gate.pace.wait({ teamId: caller.teamId, cost: 1 + costOfBody(bodyBytes), signal })
}

/** Held until the answer has left. */
export function takeBodyRoom({ gate, request, caller }: WithRow): void {
  request.onceAnswered(gate.bodies.take(caller.teamId, request.bodyBytes))
}

export async function readInput({ request, caller, row }: WithRow): Promise<{ prepared: Prepared }> {
  const input = await (request.inputFor?.(caller) ?? rawInput(request))
  const prepared = request.route.prepare(input)
  row.describe({ target: prepared.target, input: prepared.record, teamId: caller.teamId })
  return { prepared }
}

export async function resolveTeam(call: WithInput): Promise<{ acting: Caller }> {
  const { gate, caller, row, prepared } = call
  const { target, record: input, team } = prepared
  if (team === null) return { acting: caller }
  const acting = await resolveActingTeam(gate.app, caller, team)
  row.describe({ target, input, teamId: acting.teamId })
  return { acting }
}

/** Held until the answer has left. */
export function takeShareAtOnce({ gate, request, acting }: WithTeam): void {
  request.onceAnswered(gate.callsAtOnce.begin(kindOf(request), acting.teamId))
}

/**
 * A change is written down before it happens, so that none goes unseen; a route that only looks at first (`beforeWritten`)
 * may do that meanwhile. `giveBackCreation` takes a creation back where nothing was made of it. Both at once, since a caller
 * waits; a call whose creation is refused has its row either way.
 */
export async function writeDown({
  gate,
  request,
  acting,
  row,
}: WithTeam): Promise<{ giveBackCreation: () => Promise<void>; written?: Promise<void> }> {
  const { rate, kind, beforeWritten } = request.route
  if (kind === 'read' && rate !== 'creations') return { giveBackCreation: async () => {} }
  if (beforeWritten) {
    const written = row.open()
    // Awaited by the route, unless it refuses the call before that.
    written.catch(() => {})
    return { giveBackCreation: async () => {}, written }
  }
  const [giveBackCreation] = await allSettled([
    rate === 'creations'
      ? withinRate(gate, acting, rate, () => gate.rates.spendCreation(acting.credentialId))
      : async () => {},
    kind === 'change' ? row.open() : null,
  ])
  return { giveBackCreation }
}

export function authorizeCaller({ request, acting }: WithTeam): void {
  const { allow } = request.route
  if (allow !== null) authorize(acting, allow)
}

export async function runRoute({
  gate,
  request,
  acting,
  prepared,
  row,
  written,
}: WithTeam & { written?: Promise<void> }): Promise<{
  answered: Answered
}> {
  const context = written ? { ...request, written } : request
  const run = async () => await prepared.run(gate.app, context, acting)
  // A command, and what is sent for as long as its sender likes, can outlive a credential as a stream can.
  const isLong = kindOf(request) === 'command' || request.route.body.kind === 'stream'
  const watched = { caller: acting, request, commandIn: commandIn(request, prepared) }
  const answered = await (isLong ? whileAllowed(gate, watched, run) : run())
  if (answered.kind === 'json') row.result(answered.outcome)
  return { answered }
}

/** Resolves when the stream has ended. */
export async function streamAnswer(call: WithAnswer): Promise<void> {
  const { gate, request, reply, acting, prepared, answered } = call
  if (answered.kind !== 'stream') return
  const watched = { caller: acting, request, commandIn: commandIn(request, prepared) }
  await whileAllowed(gate, watched, async () => await reply.stream(answered.stream))
}

export async function closeAuditRow({ request, row }: WithAnswer): Promise<void> {
  const status = request.signal.aborted ? callerGone().status : request.route.status
  await row.close({ status, errorCode: null })
}

export function sendAnswer({ request, reply, answered }: Incoming & { answered: Answered }): void {
  if (answered.kind === 'json') reply.json(request.route.status, answered.body)
}

// The steps of a route that anyone may call, where those of a caller do not serve

/** Routes without anything to guess are not limited by failed attempts: the payment provider sends its events here. */
export function isGuessable({ path }: Route): boolean {
  return path.includes('{')
}

export function refuseGuessing({ gate, request }: Incoming): void {
  if (isGuessable(request.route)) gate.attempts.check(request.peer, '')
}

export async function readOpenInput({ request }: Incoming): Promise<{ prepared: Prepared }> {
  return { prepared: request.route.prepare(await rawInput(request)) }
}

export async function runOpenRoute({
  gate,
  request,
  prepared,
}: Incoming & { prepared: Prepared }): Promise<{ answered: Answered }> {
  return { answered: await prepared.run(gate.app, request, null) }
}

export async function streamOpenAnswer({
  reply,
  answered,
}: Incoming & { answered: Answered }): Promise<void> {
  if (answered.kind === 'stream') await reply.stream(answered.stream)
}

function kindOf({ route, wantsStream }: OperationRequest): CallKind {
  // It holds no output, and may be open all day.
  if (route.status === 101) return 'stream'
  if (route.rate === 'execs') return 'command'
  return wantsStream || route.media === EVENT_STREAM ? 'stream' : 'call'
}

/** Returns the id of the unit in which the call runs a command. */
function commandIn({ route }: OperationRequest, { target }: Prepared): string | null {
  return route.rate === 'execs' ? target : null
}

/** Reports to the operator a caller that continues beyond its rate. */
async function withinRate<T>(
  { app }: Gate,
  { teamId }: Caller,
  rate: Route['rate'],
  spend: () => Promise<T>,
): Promise<T> {
  try {
    return await spend()
  } catch (error) {
    if (toAppError(error).status === 429) logLimitReached(app, { bound: `${rate} a minute`, by: teamId })
    throw error
  }
}

async function rawInput({ params, query, idempotencyKey, readBody }: OperationRequest): Promise<RawInput> {
  return { params, query, idempotencyKey, body: await readBody() }
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
