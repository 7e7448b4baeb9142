// Runs a tier of the tests in a process of its own, beside the others: the host tier waits for almost half of its time.

import { fork } from 'node:child_process'
import { setPriority } from 'node:os'

/** The host tier takes longer, so it comes first; a third of a busy processor is left all the same. */
const NICENESS = 5
const MAX_TOLD_CHARACTERS = 2000

export type RunBeside<T> = {
  /** What it said with `report`; null if it ended before. */
  reported: T | null
  output: string
  /** The end of its output, for a failure. */
  end: string
}

/** Runs a script once more, for one tier. It ends with this process, whatever becomes of that. */
export async function runBeside<T>(script: string, args: string[]): Promise<RunBeside<T>> {
  // Maps and sets stay what they are.
  const child = fork(script, args, { silent: true, serialization: 'advanced' })
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => void output.push(text))
  let reported: T | null = null
  child.on('message', (message) => void (reported = message as T))
  await new Promise<void>((resolve) => {
    child.once('error', (error) => {
      output.push(String(error))
      resolve()
    })
    child.once('close', () => resolve())
  })
  const text = output.join('')
  return { reported, output: text, end: text.slice(-MAX_TOLD_CHARACTERS) }
}

/** Whether `runBeside` has started this process, which then gives way to its parent, and ends with it. */
export function isRunBeside(): boolean {
  if (process.send === undefined) return false
  setPriority(NICENESS)
  process.once('disconnect', () => process.exit(1))
  return true
}

/** Tells `runBeside`, and ends. */
export async function report(outcome: unknown): Promise<never> {
  await new Promise((resolve) => process.send?.(outcome, resolve))
  process.exit(0)
}
