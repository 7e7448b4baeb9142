// The methods of the service `process.Process`.

import type { JsonValue } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { z } from 'zod'
import { validation } from '../../../contract/errors.ts'
import { limits } from '../../../contract/limits.ts'
import { parse } from '../../../contract/parse.ts'
import type { ProcessList } from '../../../contract/process.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import { logError } from '../../http/errors.ts'
import { templateIn } from '../control/templates.ts'
import { notSupported } from '../errors.ts'
import { operate, checkRuns, type SandboxCall } from '../sandbox-call.ts'
import { withKeepalive } from './keepalive.ts'
import { ownRoute } from './own-route.ts'
import type { SandboxProcesses, Selector } from './processes.ts'
import type { Answer, Methods, RpcCall } from './rpc.ts'
import type { Ending, Printed, SandboxProcess, Signal } from './sandbox-process.ts'
import { untilPaused } from './until-paused.ts'

const sizeSchema = z.object({
  size: z.object({
    cols: z.int().min(1).max(limits.terminalSide),
    rows: z.int().min(1).max(limits.terminalSide),
  }),
})
const configSchema = z.object({
  cmd: z.string().min(1, 'must name a command'),
  args: z.array(z.string()).default([]),
  envs: z.record(z.string(), z.string()).default({}),
  cwd: z.string().max(limits.pathLength).default(''),
})
const startSchema = z.object({
  process: configSchema,
  pty: sizeSchema.optional(),
  tag: z.string().max(200).default(''),
  stdin: z.boolean().default(false),
})
const selectorSchema = z.object({ pid: z.int().default(0), tag: z.string().default('') })
const chosenSchema = z.object({ process: selectorSchema })
const base64 = z.string().transform((text) => Buffer.from(text, 'base64'))
const inputSchema = z.object({ stdin: base64.optional(), pty: base64.optional() })

export function processMethods(processes: SandboxProcesses): Methods {
  const find = (call: SandboxCall, input: JsonValue) => processes.find(call.unitId, selectorOf(input))
  return {
    List: { kind: 'one', answer: async (_input, call) => await listProcesses(processes, call) },
    Start: {
      kind: 'answers',
      answers: async function* (input, call) {
        const { process: config, pty, tag, stdin } = parse(startSchema, input)
        const unit = await checkRuns(call)
        const options = {
          config,
          tag,
          template: templateIn(unit),
          pty: pty?.size ?? null,
          takesInput: stdin,
        }
        yield* untilPaused(call, async function* begun(signal) {
          const { process, output } = await processes.start(call, options, signal)
          if (call.timeoutMs !== null) void killWhenLate(call, process, call.timeoutMs)
          yield* events(process, output, call)
        })
      },
    },
    Connect: {
      kind: 'answers',
      answers: async function* (input, call) {
        const process = find(call, input)
        await act(call, 'process.attach', process, async () => {})
        yield* untilPaused(call, (signal) => events(process, process.attach(signal), call))
      },
    },
    SendInput: {
      kind: 'one',
      answer: async (input, call) => {
        const process = find(call, input)
        const data = inputOf(z.object({ input: inputSchema }).parse(input).input, process)
        await act(call, 'process.input', process, async () => await process.write(data))
        return {}
      },
    },
    StreamInput: {
      kind: 'requests',
      answer: async (inputs, call) => await streamInput(processes, inputs, call),
    },
    CloseStdin: {
      kind: 'one',
      answer: async (input, call) => {
        const process = find(call, input)
        await act(call, 'process.input', process, async () => await process.endInput())
        return {}
      },
    },
    SendSignal: {
      kind: 'one',
      answer: async (input, call) => {
        const { signal } = parse(z.object({ signal: z.string().default('') }), input)
        const process = find(call, input)
        if (signal !== 'SIGNAL_SIGKILL' && signal !== 'SIGNAL_SIGTERM')
          throw notSupported('A signal other than SIGTERM and SIGKILL')
        await process.signal(call, signal === 'SIGNAL_SIGKILL' ? 'KILL' : 'TERM')
        return {}
      },
    },
    Update: {
      kind: 'one',
      answer: async (input, call) => {
        const process = find(call, input)
        const { pty } = parse(z.object({ pty: sizeSchema.optional() }), input)
        if (process.options.pty === null) throw notSupported('A size of a process without a terminal')
        if (pty) await act(call, 'process.resize', process, async () => await process.resize(pty.size))
        return {}
      },
    },
  }
}

/** The time of a command is over whether or not its client is still there. */
async function killWhenLate(call: RpcCall, process: SandboxProcess, timeoutMs: number): Promise<void> {
  const { app, stopping, requestId } = call
  if (await completesWithin(app.clock, timeoutMs, process.ended)) return
  await process
    .signal({ ...call, signal: stopping }, 'KILL')
    .catch((error: unknown) => logError(app.log, error, requestId))
}

async function act(
  call: SandboxCall,
  action: 'process.input' | 'process.resize' | 'process.attach',
  { pid }: SandboxProcess,
  work: () => Promise<void>,
): Promise<void> {
  const kind = action === 'process.attach' ? 'read' : 'change'
  await operate(call, ownRoute({ action, kind, record: { pid } }, work), {})
}

function selectorOf(input: JsonValue): Selector {
  const { pid, tag } = parse(chosenSchema, input).process
  if (pid > 0) return { pid }
  if (tag !== '') return { tag }
  throw validation([{ path: 'process', message: 'must have a pid or a tag' }])
}

function inputOf({ stdin, pty }: z.output<typeof inputSchema>, { options }: SandboxProcess): Buffer {
  const isTerminal = options.pty !== null
  // Empty bytes are left out of a message, so a message without any is one of none.
  const data = (isTerminal ? pty : stdin) ?? Buffer.alloc(0)
  if ((isTerminal ? stdin : pty) !== undefined)
    throw validation([{ path: 'input', message: 'must be "pty" for a terminal, and "stdin" for others' }])
  if (!isTerminal && !options.takesInput)
    throw validation([{ path: 'input', message: 'the process was started without standard input' }])
  return data
}

async function streamInput(
  processes: SandboxProcesses,
  inputs: AsyncIterable<JsonValue>,
  call: RpcCall,
): Promise<Answer> {
  const startSchemaOfStream = z.object({
    start: chosenSchema.optional(),
    data: z.object({ input: inputSchema }).optional(),
  })
  let process: SandboxProcess | null = null
  for await (const input of inputs) {
    const { start, data } = parse(startSchemaOfStream, input)
    if (start) {
      const found = processes.find(call.unitId, selectorOf(start as JsonValue))
      await act(call, 'process.input', found, async () => {})
      process = found
    } else if (data) {
      if (process === null) throw validation([{ path: 'start', message: 'must be the first message' }])
      await process.write(inputOf(data.input, process))
    }
  }
  return {}
}

/** Those that clients started here, and the background processes of the API. */
async function listProcesses(processes: SandboxProcesses, call: SandboxCall): Promise<Answer> {
  await checkRuns(call)
  const known = (await operate(call, 'GET /v1/units/{id}/processes', {})) as ProcessList
  const started = processes
    .list(call.unitId)
    .map(({ pid, options: { config, tag } }) => ({ pid, tag, config }))
  const background = known.processes.flatMap(({ state, pid, cmd: [cmd = '', ...args], cwd }) =>
    state === 'running' && pid !== null ? [{ pid, config: { cmd, args, cwd: cwd ?? '' } }] : [],
  )
  return { processes: [...started, ...background] }
}

async function* events(
  process: SandboxProcess,
  output: AsyncIterable<Printed>,
  call: RpcCall,
): AsyncGenerator<Answer> {
  yield { event: { start: { pid: process.pid } } }
  const printed = withKeepalive(call, output)
  for await (const each of printed) {
    if (each === 'keepalive') yield { event: { keepalive: {} } }
    else yield { event: { data: dataOf(process, each) } }
  }
  yield { event: { end: endOf(await process.ended) } }
}

function dataOf({ options }: SandboxProcess, { stream, data }: Printed): Answer {
  return options.pty === null ? { [stream]: data } : { pty: data }
}

/** Clients know the end by a signal so. */
const signalled: Record<Signal, string> = { TERM: 'signal: terminated', KILL: 'signal: killed' }
const NO_EXIT = -1

function endOf(ending: Ending): Answer {
  if (ending.kind === 'failed') throw failureOf(ending)
  if (ending.kind === 'signal') {
    const status = signalled[ending.signal]
    return { exitCode: NO_EXIT, exited: false, status, error: status }
  }
  const { exitCode } = ending
  const status = `exit status ${exitCode}`
  return { exitCode, exited: true, status, ...(exitCode === 0 ? {} : { error: status }) }
}

/** The sandbox went away under it, or its owner may not use it any more. */
function failureOf({ error }: Extract<Ending, { kind: 'failed' }>): Error {
  return error.status === 409 ? new ConnectError(error.message, Code.Unavailable) : error
}
