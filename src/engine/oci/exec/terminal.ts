// Runs an interactive command in a running machine: an exec with input while it runs. Input waits for the command in
// a bounded queue; a signal or a new size does not wait behind it.

import { type ByteQueue, createByteQueue } from '../../../lib/concurrency/byte-queue.ts'
import type { MachineRef } from '../../engine.ts'
import type { ExecExit, TerminalRequest } from '../../exec.ts'
import type { TerminalInput } from '../../terminal.ts'
import type { EngineContext } from '../machine/context.ts'
import { asUser } from './as-user.ts'
import { execInMachine } from './exec.ts'
import { tellingPid } from './told-pid.ts'
import type { Attempt } from '../runtime/attempt.ts'
import type { OnOutput } from '../kernel/pipes.ts'

/** How much may wait for a command that does not read. */
const WAITING_BYTES = 256 * 1024
/** Ctrl-D. */
const END_OF_TRANSMISSION = Buffer.from([4])

export async function terminalInMachine(
  host: EngineContext,
  ref: MachineRef,
  { size, user, ...asked }: TerminalRequest,
  input: AsyncIterable<TerminalInput>,
  onOutput: OnOutput,
  signal: AbortSignal,
  onBegun?: (pid: number) => void,
): Promise<ExecExit> {
  const request = await asUser(host, ref, { ...asked, user })
  const pieces = createByteQueue<Buffer>(WAITING_BYTES, ({ length }) => length)
  const launched = Promise.withResolvers<void>()
  let attempt: Attempt | null = null
  const onLaunched = (begun: Attempt) => {
    attempt = begun
    launched.resolve()
  }
  const ended = new AbortController()
  const took = launched.promise.then(async () => {
    await take(input, { pieces, isTerminal: size !== null, attempt: () => attempt })
  })
  took.catch((error: unknown) => ended.abort(error))
  try {
    const { user: _named, ...rest } = request
    const { onOutput: output, ...told } = onBegun ? tellingPid(rest, onBegun, onOutput) : { onOutput }
    const command = { ...rest, ...told, stdin: pieces }
    const whenOver = AbortSignal.any([signal, ended.signal])
    return await execInMachine(host, ref, command, output, whenOver, { size, onLaunched })
  } finally {
    pieces.end()
  }
}

type Taking = { pieces: ByteQueue<Buffer>; isTerminal: boolean; attempt: () => Attempt | null }

/** Until the input ends; it is the caller who ends it once the command has ended. */
async function take(
  input: AsyncIterable<TerminalInput>,
  { pieces, isTerminal, attempt }: Taking,
): Promise<void> {
  const endInput = () => (isTerminal ? pieces.push(END_OF_TRANSMISSION) : pieces.end())
  for await (const each of input) {
    if (each.kind === 'bytes') await (each.data.length > 0 ? pieces.push(each.data) : null)
    else if (each.kind === 'resize') attempt()?.resize(each.size)
    else if (each.kind === 'signal') attempt()?.signal(each.signal)
    else await endInput()
  }
  await endInput()
}
