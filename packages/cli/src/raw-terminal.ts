// Puts this terminal into raw mode: what is typed and what is printed pass as they are, and the unit's own terminal
// decides about line breaks and Ctrl-C. A process that exits in raw mode is put back by Node.

import { spawnSync } from 'node:child_process'
import type { ReadStream } from 'node:tty'

/** `io` is raw in both directions. An older Node takes it for `true`, and has no `rawMode`. */
type Raw = { setRawMode: (mode: boolean | 'io') => unknown; rawMode?: false | 'raw' | 'io' }

/** Returns what puts the terminal back as it was. */
export function makeRaw(stdin: ReadStream): () => void {
  const leave = () => void stdin.setRawMode(false)
  // Another program may have had the terminal while this one was stopped.
  const onContinue = () => {
    leave()
    enterRaw(stdin as unknown as Raw)
  }
  const onStop = () => {
    leave()
    process.kill(process.pid, 'SIGSTOP')
  }
  enterRaw(stdin as unknown as Raw)
  // Ctrl-Z goes to the unit; these come from elsewhere.
  process.on('SIGTSTP', onStop).on('SIGCONT', onContinue)
  return () => {
    process.off('SIGTSTP', onStop).off('SIGCONT', onContinue)
    leave()
  }
}

function enterRaw(stdin: Raw): void {
  const isWindows = process.platform === 'win32'
  stdin.setRawMode(isWindows ? true : 'io')
  // The raw mode of an older Node still prints LF as CR LF. Without stty that stays so.
  if (!isWindows && stdin.rawMode !== 'io')
    spawnSync('stty', ['raw', '-echo'], { stdio: ['inherit', 'ignore', 'ignore'] })
}
