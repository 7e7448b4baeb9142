// What becomes of a command that was told to start.

import type { TerminalSignal, TerminalSize } from '../../terminal.ts'

/** `exitCode` null: it ended with its machine, or its exit code is unknown. */
export type Outcome =
  | { kind: 'ended'; exitCode: number | null }
  | { kind: 'not-started'; complaint: string }
  | { kind: 'let-go' }

export type Attempt = {
  /** Rejects with the reader's own error if the reader fails to take output. */
  outcome: Promise<Outcome>
  /** Rejects as soon as the reader fails; never resolves. */
  readerFailed: Promise<never>
  /** The command was asked to end: if it starts only now, it is killed again. */
  cancel: () => void
  /** Abandons the command: kills the runtime's own process and closes the pipes. */
  letGo: () => void
  /** These two wait until the command has begun; after its end they do nothing. */
  signal: (signal: TerminalSignal) => void
  resize: (size: TerminalSize) => void
}
