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
  /** The content of standard input, which then ends unless `takesInput`. Null: empty. */
  stdin: Buffer | null
  /** Whether standard input stays open for `writeProcess`. */
  takesInput?: boolean | undefined
  /** Stored for the caller, who decides what it means. */
  keepsAwake: boolean
  /** A name by which the caller finds it again. */
  tag?: string | undefined
  /** A name or a uid of the machine's `/etc/passwd`. Absent: the user of its first process. */
  user?: string | undefined
}

/**
 * `exited`: with `exitCode`, 128 + n for signal n; also 137 if its run was stopped. `lost`: its run is over
 * (suspended, started again, gone with the host), or its end was not observed.
 */
export type MachineProcess = Pick<ProcessRequest, 'id' | 'shown' | 'cwd' | 'keepsAwake'> & {
  tag: string | null
  /** Whether `writeProcess` can still write to it. */
  takesInput: boolean
  /** Stored for the caller, as set by `keepProcessAwake`; null: not set. */
  awakeUntil: Date | null
  state: 'running' | 'exited' | 'lost'
  exitCode: number | null
  /** The process id in the machine, also that of its process group. Null if it was never known. */
  pid: number | null
  startedAt: Date
  endedAt: Date | null
  /** Bytes of both streams, in the order they were printed: those from `from` to `to` are stored. */
  output: { from: number; to: number }
}

/** A process whose end has just been recorded, and its machine. */
export type EndedProcess = { machine: string; process: MachineProcess }

/** A process that runs in a machine, as the machine itself sees it, also if the engine did not start it. */
export type MachineTask = {
  pid: number
  parentPid: number
  /** Of its process group: the `pid` of a background process, for what belongs to one. */
  groupId: number
  uid: number
  /** Null where `/etc/passwd` has no name for the uid. */
  owner: string | null
  /** One letter, as in `/proc/PID/stat`. */
  state: string
  /** Empty for one that has ended and was not waited for. Cut after some kilobytes. */
  argv: string[]
}

export const processSignals = ['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'USR2', 'TERM', 'STOP', 'CONT'] as const
export type ProcessSignal = (typeof processSignals)[number]

/**
 * `end`: the offset after the last byte. Bytes between the end of one piece and the beginning of the next are no
 * longer stored.
 */
export type ProcessOutput = ExecOutput & { end: number }
