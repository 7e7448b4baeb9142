// Input of an interactive command while it runs: bytes, the size of its terminal, signals, and the end of the input.

export type TerminalSize = { columns: number; rows: number }

export const terminalSignals = ['HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2', 'KILL'] as const
export type TerminalSignal = (typeof terminalSignals)[number]

/** `eof`: standard input ends; in a terminal, as by Ctrl-D. */
export type TerminalInput =
  | { kind: 'bytes'; data: Buffer }
  | { kind: 'resize'; size: TerminalSize }
  | { kind: 'signal'; signal: TerminalSignal }
  | { kind: 'eof' }
