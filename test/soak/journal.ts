// What a soak has seen: how often each call was made and how long it took, what was killed, and every fault.

export type Journal = {
  done(kind: string, ms: number): void
  killed(what: string): void
  /** An answer after which a caller tried again. */
  putUpWith(why: string): void
  /** Something that must not happen, with any kills. */
  fault(what: string): void
  readonly faults: readonly string[]
  readonly calls: number
  readonly kills: number
  /** One line about the progress. */
  progress(): string
  /** Everything, with a line for each kind. */
  summary(): string[]
}

/** More faults of one kind show nothing new, and must not hide another kind. */
const MAX_OF_A_KIND = 10

export function createJournal(): Journal {
  const timings = new Map<string, number[]>()
  const kills = new Map<string, number>()
  const troubles = new Map<string, number>()
  const kindsOfFaults = new Map<string, number>()
  const faults: string[] = []
  const add = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)
  const sum = (counts: Map<string, number>) => [...counts.values()].reduce((total, count) => total + count, 0)
  const list = (counts: Map<string, number>) =>
    [...counts].sort(([, a], [, b]) => b - a).map(([key, count]) => `${key} ${count}`)
  const calls = () => [...timings.values()].reduce((total, { length }) => total + length, 0)

  return {
    done: (kind, ms) => {
      timings.set(kind, [...(timings.get(kind) ?? []), ms])
    },
    killed: (what) => add(kills, what),
    putUpWith: (why) => add(troubles, why),
    fault: (what) => {
      const kind = what.replace(/[0-9a-f]*[0-9][0-9a-f]*/g, '#').slice(0, 60)
      add(kindsOfFaults, kind)
      if ((kindsOfFaults.get(kind) ?? 0) <= MAX_OF_A_KIND) faults.push(what)
    },
    faults,
    get calls() {
      return calls()
    },
    get kills() {
      return sum(kills)
    },
    progress: () =>
      `${calls()} done, ${sum(kills)} killed (${list(kills).join(', ')}), ${sum(troubles)} answers put up with, ${faults.length} faults`,
    summary: () => [
      ...[...timings].toSorted(byName).map(([kind, times]) => `${kind.padEnd(16)} ${timingsOf(times)}`),
      `killed: ${list(kills).join(', ')}`,
      `put up with: ${list(troubles).join(', ') || 'nothing'}`,
      ...faults.map((fault) => `FAULT: ${fault}`),
    ],
  }
}

function timingsOf(times: number[]): string {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(0)
  return `${String(times.length).padStart(6)} times, p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1
}
