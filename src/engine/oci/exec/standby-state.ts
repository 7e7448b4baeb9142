// The standbys of a machine (standby.ts).

import type { ExecFiles, StartedExec } from './start-exec.ts'

/** As whom its command runs: the machine's own user, or root. */
export type StandbyKind = 'user' | 'root'

export type Standby = {
  /** Of its files and its control group, as of a command's. */
  name: string
  files: ExecFiles
  generation: number
  pid: number
  /** Its inputs are the script, and what will be the command's standard input. */
  started: StartedExec
  /** Resolves when it has ended, as itself or as a command. */
  exited: Promise<unknown>
  /** Ends it when no command came. */
  expiry?: NodeJS.Timeout
}

/** Null: it could not be made. `isAwaited`: by a command, which the next one does not wait with. */
export type StandbyEntry = { made: Promise<Standby | null>; isAwaited: boolean }

export type Standbys = Map<StandbyKind, StandbyEntry>
