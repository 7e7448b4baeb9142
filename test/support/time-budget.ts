// Which files of the deep tier run within a number of minutes. The order is drawn by a seed, so that in time each of them
// runs, and a run can be repeated. How long a file takes is known from ordinary runs only (test/durations.json); in full it
// takes longer, by what its matrices leave out on a day.

import { readFileSync } from 'node:fs'
import { hash } from 'node:crypto'

type Durations = Readonly<Record<string, number>>

const measured = JSON.parse(readFileSync(new URL('../durations.json', import.meta.url), 'utf8')) as Durations

/** In full, against an ordinary run. */
const TIMES_LONGER = 2
/** Of a file that is not in the list: what prepares a host takes most of it. */
const UNKNOWN_S = 60

export function expectedSeconds(file: string, durations: Durations = measured): number {
  return Math.max(UNKNOWN_S, TIMES_LONGER * (durations[file] ?? 0))
}

/** The same order for the same seed, whatever order the files come in. */
export function inSeededOrder(files: readonly string[], seed: number): string[] {
  const place = (file: string) => hash('sha256', `${seed} ${file}`)
  return files.toSorted((a, b) => (place(a) < place(b) ? -1 : 1))
}

/** Returns the first that is expected to end in so many seconds, null if there is none. */
export function nextThatFits(
  files: readonly string[],
  secondsLeft: number,
  durations?: Durations,
): string | null {
  return files.find((file) => expectedSeconds(file, durations) <= secondsLeft) ?? null
}
