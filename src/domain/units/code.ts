// Code in contexts of a unit: kernels that the image berth.local/code runs. Each call is a command in the unit that hands one request
// to the program that has them, and reads what that tells, in lines of JSON. All of it is the unit's word: bounded, and checked.

import { z } from 'zod'
import type { App } from '../../app.ts'
import {
  type CodeContext,
  type CodeContextCreate,
  type CodeContextList,
  type CodeEnd,
  type CodeFailure,
  codeFailureSchema,
  codeLanguages,
  type CodeResult,
  type CodeRun,
  type CodeValue,
  codeValueSchema,
} from '../../contract/code.ts'
import {
  type AppError,
  invalidState,
  notFound,
  providerError,
  unavailable,
  validation,
} from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import { createLineSplitter } from '../../lib/line-splitter.ts'
import type { Caller } from '../credentials/caller.ts'
import { execInUnit } from './exec.ts'

/** Waits until the interpreter is there, hands it the request, and prints the answer. */
const CLIENT = '/usr/local/lib/berth-code/client'
/** In units whose disk is of an image from before November 2026: it answers one request, and ends. */
const OLDER_CLIENT = '/usr/local/lib/berth-code/ask'
const NO_PROGRAM = [126, 127]
/** For a context that has to start, and for one that does not stop at once. */
const GRACE_MS = 90_000
const LOOK_MS = 10_000
/** How long the command may take to end after its last line. */
const ENDS_MS = 5000
const FAILED = 'The code interpreter of the unit could not be asked; the unit may lack memory. Try again.'
const LINE_BYTES = limits.codeResultBytes + 64 * 1024

const text = z.string().transform((value) => value.toWellFormed())
const language = z.enum(codeLanguages)
const shown = z.object({
  id: text,
  language,
  cwd: text,
  state: z.enum(['starting', 'idle', 'busy', 'lost']),
  createdAt: z.iso.datetime(),
})

const told = z.discriminatedUnion('type', [
  z.object({ type: z.literal('begin'), context: text, language }),
  z.object({ type: z.enum(['stdout', 'stderr']), text }),
  z.object({ type: z.literal('result'), ...codeValueSchema.shape }),
  z.object({ type: z.literal('error'), ...codeFailureSchema.shape }),
  z.object({ type: z.literal('refused'), code: z.string(), message: text }),
  z.object({
    type: z.literal('end'),
    end: z.enum(['done', 'timeout', 'died']).optional(),
    count: z.int().nullable().optional(),
    cut: z.boolean().optional(),
    context: z.union([text, shown]).optional(),
    contexts: z.array(shown).max(limits.codeContexts).optional(),
  }),
])
type Told = z.infer<typeof told>
type Refused = Extract<Told, { type: 'refused' }>
type Ended = Extract<Told, { type: 'end' }>

export type CodeEvent =
  | { type: 'begin'; context: string; language: CodeEnd['language'] }
  | { type: 'stdout' | 'stderr'; text: string }
  | { type: 'result'; value: CodeValue }
  | { type: 'exception'; failure: CodeFailure }

type RunOptions = {
  /** Aborting it interrupts the code. */
  signal: AbortSignal
  /** Nothing happens before it resolves, but for a look at the unit. */
  written?: Promise<void>
}

export type CodeOptions = RunOptions & {
  /** Awaited, so that a slow reader slows the answer down. */
  onEvent: (event: CodeEvent) => void | Promise<void>
}

export async function runCode(
  app: App,
  caller: Caller,
  id: string,
  request: CodeRun,
  { onEvent, ...options }: CodeOptions,
): Promise<CodeEnd> {
  if (request.env !== undefined && (request.language ?? 'python') !== 'python')
    throw validation([
      { path: 'env', message: 'is for Python; give other languages a context with an environment' },
    ])
  let began: Extract<Told, { type: 'begin' }> | null = null
  let printed = 0
  let truncated = false
  const receive = async (event: Told) => {
    if (event.type === 'begin') {
      began = event
      await onEvent({ type: 'begin', context: event.context, language: event.language })
    } else if (event.type === 'stdout' || event.type === 'stderr') {
      printed += event.text.length
      if (printed <= limits.codePrintedCharacters) await onEvent({ type: event.type, text: event.text })
      else truncated = true
    } else if (event.type === 'result') {
      await onEvent({ type: 'result', value: { data: event.data, main: event.main } })
    } else if (event.type === 'error') {
      const { name, value, traceback } = event
      await onEvent({ type: 'exception', failure: { name, value, traceback } })
    }
  }
  const asked = { op: 'run', ...request }
  const ended = await ask(app, caller, id, asked, { receive, ...options, timeoutMs: request.timeoutMs })
  const begin = began as Extract<Told, { type: 'begin' }> | null
  if (begin === null) throw nonsense()
  return {
    context: begin.context,
    language: begin.language,
    executionCount: ended.count ?? null,
    timedOut: ended.end === 'timeout',
    truncated: truncated || ended.cut === true,
  }
}

/** The whole of a run in one answer, each stream up to the limit of a command's. */
export async function runCodeWhole(
  app: App,
  caller: Caller,
  id: string,
  request: CodeRun,
  options: RunOptions,
): Promise<CodeResult> {
  const kept = { stdout: '', stderr: '' }
  const results: CodeValue[] = []
  let error: CodeFailure | null = null
  let cut = false
  const onEvent = (event: CodeEvent) => {
    if (event.type === 'begin') return
    if (event.type === 'result') results.push(event.value)
    else if (event.type === 'exception') error ??= event.failure
    else {
      const room = limits.execOutputBytes - kept[event.type].length
      if (event.text.length > room) cut = true
      kept[event.type] += event.text.slice(0, Math.max(0, room))
    }
  }
  const { truncated, ...end } = await runCode(app, caller, id, request, { onEvent, ...options })
  return { ...end, truncated: truncated || cut, ...kept, results, error }
}

export async function listContexts(app: App, caller: Caller, id: string): Promise<CodeContextList> {
  const { contexts = [] } = await ask(app, caller, id, { op: 'list' })
  return { contexts: contexts.map((context) => ({ ...context, unitId: id })) }
}

export async function createContext(
  app: App,
  caller: Caller,
  id: string,
  request: CodeContextCreate,
): Promise<CodeContext> {
  return await aboutContext(app, caller, id, { op: 'create', ...request })
}

export async function changeContext(
  app: App,
  caller: Caller,
  id: string,
  op: 'restart' | 'interrupt' | 'delete',
  context: string,
): Promise<CodeContext> {
  return await aboutContext(app, caller, id, { op, context })
}

async function aboutContext(app: App, caller: Caller, id: string, asked: object): Promise<CodeContext> {
  const { context } = await ask(app, caller, id, asked)
  if (typeof context !== 'object') throw nonsense()
  return { ...context, unitId: id }
}

type AskOptions = Partial<RunOptions> & { receive?: (event: Told) => Promise<void>; timeoutMs?: number }

/** Throws what the interpreter refuses. */
async function ask(
  app: App,
  caller: Caller,
  id: string,
  asked: object,
  options: AskOptions = {},
): Promise<Ended> {
  const ended = await askBy(CLIENT, app, caller, id, asked, options)
  if (ended !== null) return ended
  // A machine that dies or has no memory left may end any command so.
  if (await isThere(app, caller, id)) throw providerError(FAILED)
  const older = await askBy(OLDER_CLIENT, app, caller, id, asked, options)
  if (older === null) throw hasNone()
  return older
}

/** Returns null if the unit cannot run the program. */
async function askBy(
  program: typeof CLIENT | typeof OLDER_CLIENT,
  app: App,
  caller: Caller,
  id: string,
  asked: object,
  { receive, signal, written, timeoutMs = 0 }: AskOptions,
): Promise<Ended | null> {
  const lines = createLineSplitter(LINE_BYTES, () => {
    throw nonsense()
  })
  let refused: Refused | null = null
  let ended: Ended | null = null
  let isSilent = true
  const request = { cmd: [program], stdin: `${JSON.stringify(asked)}\n`, timeoutMs: timeoutMs + GRACE_MS }
  const told = Promise.withResolvers<null>()
  const onOutput = async ({ stream, data }: { stream: 'stdout' | 'stderr'; data: Buffer }) => {
    if (stream === 'stderr') return
    isSilent = false
    for (const line of lines.add(data)) {
      if ((refused ?? ended) !== null) return
      const event = read(line)
      if (event.type === 'refused') refused = event
      else if (event.type === 'end') ended = event
      else await receive?.(event)
      if ((refused ?? ended) !== null) told.resolve(null)
    }
  }
  const late = new AbortController()
  const ends = signal ? AbortSignal.any([signal, late.signal]) : late.signal
  const asking = execInUnit(app, caller, id, request, {
    onOutput,
    signal: ends,
    worker: program === CLIENT,
    ...(written && { written }),
  })
  // The answer is whole with its last line. How the command ends says nothing more, and takes a while.
  const exit = await Promise.race([asking, told.promise])
  if (exit === null) void endSoon(app, asking, late)
  if (refused !== null) throw refusalOf(refused, asked)
  if (ended !== null) return ended
  if (exit === null) throw nonsense()
  const { exitCode, timedOut } = exit
  if (NO_PROGRAM.includes(exitCode)) return null
  if (isSilent && !timedOut)
    throw unavailable('The code interpreter of the unit does not answer; try again in 5 s.', 5)
  throw providerError('The code interpreter of the unit ended while it answered; its contexts are lost.')
}

/** A command that goes on after its answer is killed. */
async function endSoon(app: App, asking: Promise<unknown>, late: AbortController): Promise<void> {
  const hasEnded = await completesWithin(app.clock, ENDS_MS, asking).catch(() => true)
  if (!hasEnded) late.abort()
  await asking.catch(() => {})
}

async function isThere(app: App, caller: Caller, id: string): Promise<boolean> {
  const request = { cmd: ['test', '-e', CLIENT], timeoutMs: LOOK_MS }
  return (await execInUnit(app, caller, id, request, { onOutput: () => {} })).exitCode === 0
}

function read(line: string): Told {
  try {
    return told.parse(JSON.parse(line))
  } catch {
    throw nonsense()
  }
}

function refusalOf({ code, message }: Refused, asked: object): AppError {
  const shownMessage = message.slice(0, 500)
  if (code === 'not_found') return notFound('context', 'context' in asked ? String(asked.context) : '')
  if (code === 'validation') return validation([{ path: 'language', message: shownMessage }])
  if (code === 'unavailable') return unavailable(shownMessage, 5)
  return invalidState(shownMessage, { context: code === 'lost' ? 'lost' : null })
}

function hasNone(): AppError {
  return invalidState(
    'The unit has no code interpreter. Make one of the image berth.local/code:1 without an entrypoint of your own.',
    null,
  )
}

function nonsense(): AppError {
  return providerError(
    'The code interpreter of the unit gave an answer that is none. Was its program changed?',
  )
}
