// Commands that continue after the call that started them.

import type { ExecOutput } from './exec.ts'

/** A command that runs on after the call that started it. */
export type ProcessRequest = {
  /** Chosen by the caller: a second request with the same id is the same process. */
  id: string
  argv: string[]
  /** The command without passwords, as it is shown to others. Only this is kept after its run. */
  shown: string[]
  /** Overrides the environment of the machine's first process. */
  env: Record<string, string>
  /** Null: the working directory of the machine's first process. */
  cwd: string | null
  /** The content of standard input, which then ends. Null: empty. */
  stdin: Buffer | null
  /** Stored for the caller, who decides what it means. */
  keepsAwake: boolean
}

/**
 * `exited`: with `exitCode`, 128 + n for signal n; also 137 if its run was stopped. `lost`: its run is over
 * (suspended, started again, gone with the host), or its end was not observed.
 */
export type MachineProcess = Pick<ProcessRequest, 'id' | 'shown' | 'cwd' | 'keepsAwake'> & {
  state: 'running' | 'exited' | 'lost'
  exitCode: number | null
  /** The process id in the machine, also that of its process group. Null if it was never known. */
  pid: number | null
  startedAt: Date
  endedAt: Date | null
  /** Bytes of both streams, in the order they were printed: those from `from` to `to` are stored. */
  output: { from: number; to: number }
}

export const processSignals = ['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'USR2', 'TERM', 'STOP', 'CONT'] as const
export type ProcessSignal = (typeof processSignals)[number]

/**
 * `end`: the offset after the last byte. Bytes between the end of one piece and the beginning of the next are no
 * longer stored.
 */
export type ProcessOutput = ExecOutput & { end: number }
