// The input, output and result of a command in a machine.

import type { TerminalSize } from './terminal.ts'

export type ExecRequest = {
  argv: string[]
  /** Overrides the environment of the machine's first process. */
  env?: Record<string, string> | undefined
  /** Absent or null: the working directory of the machine's first process. */
  cwd?: string | null | undefined
  /** Null closes standard input at once, so that programs that wait for it end instead of hanging. */
  stdin: Buffer | null
  timeoutMs: number
  /** A name or a uid of the machine's `/etc/passwd`. Absent: the user of its first process. */
  user?: string | undefined
  /** It asks whether the machine is ready, which exit code 0 says. */
  probe?: boolean | undefined
  /**
   * A program of ours that answers one request after another: each is a line of its input, and a zero byte ends each answer. It
   * may be kept for the next request. It writes the rest itself where a write(2) is cut short.
   */
  worker?: boolean | undefined
}

export type ExecOutput = { stream: 'stdout' | 'stderr'; data: Buffer }
export type ExecExit = { exitCode: number; timedOut: boolean }

/** An interactive command: its input comes while it runs. */
export type TerminalRequest = Pick<ExecRequest, 'argv' | 'env' | 'cwd' | 'timeoutMs' | 'user'> & {
  /** Null: no terminal, but pipes, with its two outputs apart. */
  size: TerminalSize | null
}
