// The one wrapper around every operation. `callSteps` is the list of all checks, in the order in which they run. A
// call whose audit row has begun ends in exactly one row, whatever happens (a refusal, an error, a client that
// disconnects).

import type { App } from '../app.ts'
import { createAuditTrail } from '../domain/audit/audit.ts'
import { createAuthenticate } from '../domain/credentials/authenticate.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import { createFailedAttempts } from '../domain/credentials/failed-attempts.ts'
import { createRateLimits } from '../domain/credentials/rate-limit.ts'
import { pipeline } from '../lib/pipeline.ts'
import { toAppError } from './http/errors.ts'
import { authenticateRequest } from './operation/authenticate.ts'
import type { Gate, Incoming, OperationRequest, Reply } from './operation/call.ts'
import { createBodyRoom } from './operation/body-room.ts'
import { createCallsAtOnce } from './operation/calls-at-once.ts'
import { refuseCall } from './operation/refusal.ts'
import { createRefusalPace } from './operation/refusal-pace.ts'
import { costOfBody, createTeamPace } from './operation/team-pace.ts'
import * as step from './operation/call-steps.ts'

export type { OperationRequest, Reply } from './operation/call.ts'

/** The steps of a call, in this order. */
export const callSteps = pipeline<Incoming>()
  .step('authenticate', step.authenticate)
  .step('begin the audit row', step.beginAuditRow)
  .step('take a session from our own pages only', step.refuseForeignPages)
  .step('spend the rate', step.spendRate)
  .step('keep to the pace of its team', step.keepPace)
  .step('take room for the body', step.takeBodyRoom)
  .step('read and validate the input', step.readInput)
  .step('find the team it acts in', step.resolveTeam)
  .step('take a share of the calls at once', step.takeShareAtOnce)
  .step('spend the rate of creations, and write the audit row of a change', step.writeDown)
  .step('authorize', step.authorizeCaller)
  .step('run, or give the earlier answer of an Idempotency-Key', step.runRoute)
  .step('stream the answer, while the credential allows it', step.streamAnswer)
  .step('close the audit row', step.closeAuditRow)
  .step('send the answer', step.sendAnswer)

/** The same for a route without credentials: without a caller there is no audit row. */
export const openCallSteps = pipeline<Incoming>()
  .step('refuse an address that guesses', step.refuseGuessing)
  .step('read and validate the input', step.readOpenInput)
  .step('run', step.runOpenRoute)
  .step('stream the answer', step.streamOpenAnswer)
  .step('send the answer', step.sendAnswer)

export type Operations = {
  run(request: OperationRequest, reply: Reply): Promise<void>
  /** Authenticates a request that contains several operations. Throws as `run` does, and counts failures. */
  authenticate(request: Pick<OperationRequest, 'presented' | 'peer'>): Promise<Caller>
  /** For a body that is read before its operations are known: waits and counts as the steps of a call do. */
  admitBody(
    caller: Caller,
    body: Pick<OperationRequest, 'bodyBytes' | 'signal' | 'onceAnswered'>,
  ): Promise<void>
  /** The same as `run` for a caller that `authenticate` returned. */
  runAs(caller: Caller, request: OperationRequest, reply: Reply): Promise<void>
  /** Resolves when the operations in progress have ended, including those whose clients have disconnected. */
  ended(): Promise<void>
}

export function createOperations(app: App): Operations {
  const underWay = new Set<Promise<void>>()
  const gate: Gate = {
    app,
    underWay: () => underWay.size,
    callsAtOnce: createCallsAtOnce(app),
    authenticate: createAuthenticate(app),
    attempts: createFailedAttempts(app),
    rates: createRateLimits(app),
    refusals: createRefusalPace(),
    pace: createTeamPace(app),
    bodies: createBodyRoom(app),
    audit: createAuditTrail(app),
  }
  const counted = async (running: Promise<void>) => {
    underWay.add(running)
    try {
      await running
    } finally {
      underWay.delete(running)
    }
  }
  return {
    run: async (request, reply) => {
      const run = request.route.auth === 'none' ? runOpenCall : runCall
      await counted(run({ gate, request, reply, knownCaller: null }))
    },
    authenticate: async (request) => await authenticateRequest(gate, request),
    admitBody: async ({ teamId }, { bodyBytes, signal, onceAnswered }) => {
      await gate.pace.wait({ teamId, cost: costOfBody(bodyBytes), signal })
      onceAnswered(gate.bodies.take(teamId, bodyBytes))
    },
    runAs: async (caller, request, reply) =>
      await counted(runCall({ gate, request, reply, knownCaller: caller })),
    ended: async () => void (await Promise.allSettled(underWay)),
  }
}

/** Throws the error for the caller, unless it has been answered. */
async function runCall(call: Incoming): Promise<void> {
  try {
    await callSteps.run(call)
  } catch (error) {
    throw await refuseCall(call, error)
  }
}

/** 404s on open routes count against the failed-authentication limit of the address. */
async function runOpenCall(call: Incoming): Promise<void> {
  const { gate, request } = call
  try {
    await openCallSteps.run(call)
  } catch (error) {
    if (step.isGuessable(request.route) && toAppError(error).status === 404)
      gate.attempts.failed(request.peer)
    throw error
  }
}
