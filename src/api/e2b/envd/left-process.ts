// A process whose sandbox was paused for so long that the machine ended, with its memory kept: it goes on when the sandbox
// does, and nothing of ours is its other end any more. It is known by its id alone; what it prints, and how it ends, is lost.

import { notFound } from '../../../contract/errors.ts'
import type { ExecResult } from '../../../contract/exec.ts'
import { limits } from '../../../contract/limits.ts'
import { notSupported } from '../errors.ts'
import { operate, type SandboxCall } from '../sandbox-call.ts'
import { type Ending, type Printed, signalling, type StartOptions } from './sandbox-process.ts'

export type LeftBehind = { pid: number; options: StartOptions }

const WAIT = 'while kill -0 "$1" 2>/dev/null; do sleep 1; done'

export class LeftProcess {
  readonly pid: number
  readonly options: StartOptions
  /** Resolves when one that is attached to has ended. */
  readonly ended: Promise<Ending>
  readonly #call: SandboxCall
  readonly #ends = Promise.withResolvers<Ending>()

  constructor(call: SandboxCall, { pid, options }: LeftBehind) {
    this.#call = call
    this.pid = pid
    this.options = options
    this.ended = this.#ends.promise
  }

  /** Nothing, until it has ended. */
  attach(signal: AbortSignal): AsyncIterable<Printed> {
    const next = async () => {
      await this.#untilGone({ ...this.#call, signal })
      return { done: true, value: undefined } as const
    }
    return { [Symbol.asyncIterator]: () => ({ next }) }
  }

  async write(): Promise<void> {
    throw noInput()
  }

  async endInput(): Promise<void> {
    throw noInput()
  }

  async resize(): Promise<void> {
    throw noInput()
  }

  /** Throws `not_found` for one that has ended. */
  async signal(call: SandboxCall, name: 'TERM' | 'KILL'): Promise<void> {
    const { exitCode } = (await operate(call, EXEC, { body: signalling(name, this.pid) })) as ExecResult
    if (exitCode !== 0) throw notFound('process', String(this.pid))
  }

  async #untilGone(call: SandboxCall): Promise<void> {
    const cmd = ['/bin/sh', '-c', WAIT, 'wait', String(this.pid)]
    const body = { cmd, timeoutMs: limits.execTimeoutMs.max }
    while (((await operate(call, EXEC, { body })) as ExecResult).timedOut);
    this.#ends.resolve({ kind: 'unknown' })
  }
}

const EXEC = 'POST /v1/units/{id}/exec'

function noInput() {
  return notSupported('Input for a process that began before its sandbox was paused')
}
