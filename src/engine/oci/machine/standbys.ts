// The standbys of a machine (standby.ts), and what makes them (forker.ts).

import type { ExecFiles } from '../runtime/driver.ts'
import type { StartedExec } from '../runtime/start-exec.ts'

/** As whom its command runs: the machine's own user, or root. */
export type StandbyKind = 'user' | 'root'

/** A process of ours in a machine, with files and a control group as a command has them. */
export type Placed = {
  name: string
  files: ExecFiles
  generation: number
  pid: number
  /** Resolves when it has ended, as itself or as a command. */
  exited: Promise<unknown>
  /** Ends it when no command came. */
  expiry?: NodeJS.Timeout
}

export type Standby = Placed & {
  /** Its inputs are the script, and what will be the command's standard input. */
  started: StartedExec
  /** What made it; null if the runtime did. */
  forker: Forker | null
}

export type Forker = Placed & {
  /** Whether it has made a process that enters the group, and has these for its first four descriptors. One at a time. */
  fork: (entry: number, descriptors: readonly [number, number, number, number]) => Promise<boolean>
  close: () => void
}

/** Null: it could not be made. `isAwaited`: by a command, which the next one does not wait with. */
export type StandbyEntry = { made: Promise<Standby | null>; isAwaited: boolean }

export type Standbys = Map<StandbyKind, StandbyEntry>

export type Forkers = Map<StandbyKind, Forker>
