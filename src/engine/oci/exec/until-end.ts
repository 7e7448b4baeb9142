// Waits for the end of a command that has been started: at its deadline, and where nobody reads it any more, it is killed.

import type { MachineRef, MachineStatus } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import type { ExecExit } from '../../exec.ts'
import type { OnOutput } from '../kernel/pipes.ts'
import type { EngineContext, Machine } from '../machine/context.ts'
import type { Attempt } from '../runtime/attempt.ts'

const TIMED_OUT_CODE = 124
/** 128 + SIGKILL: the exit code of a command that ended with its machine. */
const KILLED_CODE = 137
const NOT_FOUND = 127
const NOT_EXECUTABLE = 126
/** How long a killed command may take to end before the call returns without it. */
const LET_GO_AFTER_MS = 3000

type Call = {
  ref: MachineRef
  request: { argv: string[]; timeoutMs: number }
  onOutput: OnOutput
  kill: () => Promise<void>
  signal: AbortSignal | undefined
}

export async function untilEnd(
  host: EngineContext,
  machine: Machine,
  attempt: Attempt,
  call: Call,
): Promise<ExecExit> {
  let timedOut = false
  const timers: NodeJS.Timeout[] = []
  const after = (ms: number, work: () => void) => void timers.push(setTimeout(work, ms))
  const kill = () => {
    call.kill().catch((error: unknown) => host.log.warn({ err: error }, 'command was not killed'))
  }
  const end = () => {
    attempt.cancel()
    kill()
    after(LET_GO_AFTER_MS, () => {
      // Whatever delayed it may have delayed its start.
      kill()
      attempt.letGo()
    })
  }
  const onRunEnded = ({ id }: MachineStatus) => {
    if (id === call.ref.id) after(LET_GO_AFTER_MS, attempt.letGo)
  }
  after(call.request.timeoutMs, () => {
    timedOut = true
    end()
  })
  // No one reads the output any more, so the command is ended.
  attempt.readerFailed.catch(end)
  call.signal?.addEventListener('abort', end, { once: true })
  host.events.on('ended', onRunEnded)
  try {
    const outcome = await attempt.outcome
    if (timedOut) return { exitCode: TIMED_OUT_CODE, timedOut }
    const isRunEnding = machine.ending || machine.record.generation !== call.ref.generation
    const hasEnded = isRunEnding || machine.record.state !== 'running'
    if (outcome.kind === 'not-started') {
      if (hasEnded) throw new EngineError('not_running', 'The machine is being ended.')
      return await reportNotStarted(call, outcome.complaint)
    }
    const exitCode = outcome.kind === 'ended' ? (outcome.exitCode ?? KILLED_CODE) : KILLED_CODE
    if (exitCode === KILLED_CODE && isRunEnding) {
      throw new EngineError('run_ended', 'The machine was ended while the command ran.')
    }
    return { exitCode, timedOut }
  } finally {
    for (const timer of timers) clearTimeout(timer)
    call.signal?.removeEventListener('abort', end)
    host.events.off('ended', onRunEnded)
  }
}

/** A command that cannot be executed ends as in a shell: 127 or 126, with the reason on stderr. */
async function reportNotStarted({ request, onOutput }: Call, complaint: string): Promise<ExecExit> {
  // It was frozen between our check and the runtime's.
  if (/paused container/.test(complaint)) throw new EngineError('frozen', 'The machine is frozen.')
  const command = request.argv[0] ?? ''
  // gVisor takes an empty name for the directory.
  const denied = command !== '' && /permission denied|exec format error|is a directory/i.test(complaint)
  const why = denied ? 'cannot be executed' : 'command not found'
  await onOutput({ stream: 'stderr', data: Buffer.from(`${command.slice(0, 200)}: ${why}\n`) })
  return { exitCode: denied ? NOT_EXECUTABLE : NOT_FOUND, timedOut: false }
}
