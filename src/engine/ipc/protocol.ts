// The protocol of the engine's socket: every operation of engine.ts with the schema and the size limit of its request
// and answer. The client parses untrusted bytes and may have been taken over (design 2), so the engine trusts
// nothing: ids, names, counts and sizes are all limited here.
//
// POST /<operation> with a JSON body. Unary operations answer JSON; streamed ones answer frames (frames.ts), and two-way
// ones take frames as well. Each call names the epoch of its server in a header, except the one that asks for the newest
// epoch. Low-latency operations use JSON lines on another socket.

import { z } from 'zod'
import { limits } from '../../contract/limits.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import type { AnswersOf, RequestsOf } from '../../lib/ipc/operation-types.ts'
import type { Engine } from '../engine.ts'
import { processSignals } from '../process.ts'
import { engineErrorKinds } from '../errors.ts'
import { bytes, date, id, nothing, ref, SMALL, tcpPort } from './fields.ts'
import { streamedFileOperations, twoWayFileOperations, unaryFileOperations } from './file-protocol.ts'
import {
  image,
  machineEgress,
  machineMetrics,
  endedProcess,
  machineProcess,
  machineSeen,
  machineTask,
  processOutput,
  processRequest,
  pullProgress,
  renewal,
  renewalOutcome,
  terminalRequest,
} from './shapes.ts'
import {
  MB,
  FORKS,
  reference,
  networkGroup,
  cursor,
  machineSpec,
  runSpec,
  forkSpec,
  stopRequest,
  execRequest,
  offset,
  logQuery,
  capabilities,
  capacity,
  status,
  logLine,
  nobody,
} from './schemas.ts'

export const EPOCH_HEADER = 'berth-epoch'
export const EPOCH_QUESTION = 'epoch'
export const EPOCH_DEADLINE_MS = 30 * SECOND

/** What a TLS connection carries (tls-listener.ts), as it is named in ALPN. */
export const TLS_PROTOCOLS = { http: 'http/1.1', quick: 'berth-quick' } as const

/**
 * Operations with one answer. `deadlineMs` is when the client stops waiting: longer than the engine's own timeouts,
 * so it only applies if the engine hangs. The operation itself goes on.
 */
export const unaryOperations = {
  capabilities: { request: nobody, answer: capabilities, maxBodyBytes: SMALL, deadlineMs: MINUTE },
  capacity: { request: nobody, answer: capacity, maxBodyBytes: SMALL, deadlineMs: 30 * SECOND },
  renew: {
    request: z.strictObject({ outcome: renewalOutcome.nullable() }),
    answer: renewal.nullable(),
    maxBodyBytes: SMALL,
    deadlineMs: 30 * SECOND,
  },
  pull: {
    request: z.strictObject({
      reference,
      waiter: z.strictObject({ id, teamId: id, networkGroup }).optional(),
    }),
    answer: image,
    maxBodyBytes: SMALL,
    deadlineMs: 30 * MINUTE,
  },
  create: { request: machineSpec, answer: status, maxBodyBytes: SMALL, deadlineMs: 2 * MINUTE },
  start: {
    request: z.strictObject({ ref, run: runSpec }),
    answer: z.object({ resumed: z.boolean(), runtime: z.string().max(100).optional() }),
    maxBodyBytes: 8 * MB,
    deadlineMs: 2 * MINUTE,
  },
  stop: { request: stopRequest, answer: nothing, maxBodyBytes: SMALL, deadlineMs: 7 * MINUTE },
  suspend: { request: stopRequest, answer: z.boolean(), maxBodyBytes: SMALL, deadlineMs: 7 * MINUTE },
  fork: {
    request: z.strictObject({
      forks: z
        .array(forkSpec)
        .min(1)
        .max(FORKS)
        .refine((forks) => new Set(forks.map(({ id }) => id)).size === forks.length),
    }),
    answer: z.array(z.object({ status, copied: z.enum(['memory', 'disk']) })),
    // A few machines' worth of start specs: a stack's environments and boot files are small.
    maxBodyBytes: 32 * MB,
    deadlineMs: 2 * MINUTE,
  },
  freeze: { request: z.strictObject({ ref }), answer: nothing, maxBodyBytes: SMALL, deadlineMs: 30 * SECOND },
  thaw: { request: z.strictObject({ ref }), answer: nothing, maxBodyBytes: SMALL, deadlineMs: 30 * SECOND },
  destroy: { request: z.strictObject({ id }), answer: nothing, maxBodyBytes: SMALL, deadlineMs: 2 * MINUTE },
  putAside: { request: z.strictObject({ id }), answer: nothing, maxBodyBytes: SMALL, deadlineMs: 2 * MINUTE },
  list: { request: nobody, answer: z.array(status), maxBodyBytes: SMALL, deadlineMs: 30 * SECOND },
  metrics: {
    request: z.strictObject({ id }),
    answer: machineMetrics,
    maxBodyBytes: SMALL,
    deadlineMs: 30 * SECOND,
  },
  startProcess: {
    request: z.strictObject({ ref, request: processRequest }),
    answer: machineProcess,
    maxBodyBytes: 8 * MB,
    deadlineMs: 2 * MINUTE,
  },
  processes: {
    request: z.strictObject({ id }),
    answer: z.array(machineProcess),
    maxBodyBytes: SMALL,
    deadlineMs: 30 * SECOND,
  },
  processOutput: {
    request: z.strictObject({
      id,
      process: id,
      after: offset,
      maxBytes: z.int().min(1).max(limits.processPageBytes.max),
    }),
    answer: z.array(processOutput),
    maxBodyBytes: SMALL,
    deadlineMs: 30 * SECOND,
  },
  signalProcess: {
    request: z.strictObject({ ref, process: id, signal: z.enum(processSignals) }),
    answer: nothing,
    maxBodyBytes: SMALL,
    deadlineMs: MINUTE,
  },
  writeProcess: {
    request: z.strictObject({ ref, process: id, data: bytes(limits.processInputBytes), end: z.boolean() }),
    answer: z.int(),
    maxBodyBytes: MB,
    deadlineMs: MINUTE,
  },
  keepProcessAwake: {
    request: z.strictObject({ id, process: id, until: date }),
    answer: nothing,
    maxBodyBytes: SMALL,
    deadlineMs: 30 * SECOND,
  },
  forgetProcess: {
    request: z.strictObject({ id, process: id }),
    answer: nothing,
    maxBodyBytes: SMALL,
    deadlineMs: MINUTE,
  },
  tasks: {
    request: z.strictObject({ ref }),
    answer: z.object({ tasks: z.array(machineTask).max(limits.processTable), truncated: z.boolean() }),
    maxBodyBytes: SMALL,
    deadlineMs: MINUTE,
  },
  signalTask: {
    request: z.strictObject({
      ref,
      pid: z
        .int()
        .min(1)
        .max(10 ** 7),
      signal: z.enum(processSignals),
    }),
    answer: nothing,
    maxBodyBytes: SMALL,
    deadlineMs: MINUTE,
  },
  openLoopback: {
    request: z.strictObject({ ref, port: tcpPort }),
    answer: tcpPort.nullable(),
    maxBodyBytes: SMALL,
    deadlineMs: MINUTE,
  },
  ...unaryFileOperations,
  logs: {
    request: z.strictObject({ id, query: logQuery }),
    answer: z.array(logLine),
    maxBodyBytes: SMALL,
    deadlineMs: 30 * SECOND,
  },
  restrict: {
    request: z.strictObject({ ref, egress: machineEgress.nullable() }),
    answer: nothing,
    maxBodyBytes: SMALL,
    deadlineMs: 30 * SECOND,
  },
  recover: {
    request: z.strictObject({ wanted: z.array(id).max(100_000) }),
    answer: z.object({ adopted: z.number(), removed: z.number(), lost: z.number() }),
    maxBodyBytes: 8 * MB,
    deadlineMs: 30 * MINUTE,
  },
} satisfies Partial<Record<keyof Engine, Unary>>

/** Operations answered in frames; `item` is the schema of one message frame. */
export const streamedOperations = {
  exec: {
    request: z.strictObject({ ref, request: execRequest }),
    item: z.object({ exitCode: z.number(), timedOut: z.boolean() }),
    maxBodyBytes: 8 * MB,
  },
  followLogs: {
    request: z.strictObject({ id, after: cursor.nullable() }),
    item: logLine,
    maxBodyBytes: SMALL,
  },
  followProcess: {
    request: z.strictObject({ id, process: id, after: offset }),
    item: processOutput,
    maxBodyBytes: SMALL,
  },
  ...streamedFileOperations,
  watchExits: { request: nobody, item: status, maxBodyBytes: SMALL },
  watchProcesses: { request: nobody, item: endedProcess, maxBodyBytes: SMALL },
  watchTraffic: { request: nobody, item: z.array(z.string()), maxBodyBytes: SMALL },
  watchEgress: { request: nobody, item: machineSeen, maxBodyBytes: SMALL },
  watchPulls: { request: nobody, item: z.array(pullProgress), maxBodyBytes: SMALL },
} satisfies Record<Exclude<keyof Engine, UnaryOperation | TwoWayOperation>, Streamed>

/** Operations whose request goes on after it has begun: a message frame, then frames of input to the end of the body. */
export const twoWayOperations = {
  ...twoWayFileOperations,
  terminal: {
    request: z.strictObject({ ref, request: terminalRequest, tellPid: z.boolean().optional() }),
    item: z.union([z.object({ pid: z.number() }), z.object({ exitCode: z.number(), timedOut: z.boolean() })]),
  },
} satisfies Partial<Record<keyof Engine, TwoWay>>

type Unary = { request: z.ZodType; answer: z.ZodType; maxBodyBytes: number; deadlineMs: number }
type Streamed = { request: z.ZodType; item: z.ZodType; maxBodyBytes: number }

type TwoWay = { request: z.ZodType; item: z.ZodType }

export type TwoWayOperation = keyof typeof twoWayOperations
export type TwoWayRequest = RequestsOf<typeof twoWayOperations>
export type UnaryOperation = keyof typeof unaryOperations
export type StreamedOperation = keyof typeof streamedOperations
export type UnaryRequest = RequestsOf<typeof unaryOperations>
export type UnaryAnswer = AnswersOf<typeof unaryOperations>
export type StreamedRequest = RequestsOf<typeof streamedOperations>

/** An encoded EngineError, as a body or as the last frame of a stream. */
export const errorAnswer = z.object({
  error: z.object({ kind: z.enum(engineErrorKinds), publicMessage: z.string() }),
})
export type ErrorAnswer = z.output<typeof errorAnswer>

/** How often an idle stream sends an empty frame; a client that receives nothing for three times as long gives up. */
export const KEEP_ALIVE_MS = 15 * SECOND

/** Returns a sentence on what is invalid in a message, without its values. */
export function issuesOf(error: z.ZodError): string {
  return error.issues
    .slice(0, 5)
    .map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`)
    .join('; ')
}
