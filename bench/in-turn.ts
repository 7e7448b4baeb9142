// Two sides that do the same in turn, so that what else happens on the machine shows in both.

/** Milliseconds of each round. */
export type Pair = { one: number[]; other: number[] }

/** Which of the two begins changes with each round. The first rounds warm both up and do not count. */
export async function inTurn(
  rounds: number,
  sides: { one: () => Promise<number>; other: () => Promise<number> },
): Promise<Pair> {
  const warm = Math.ceil(rounds / 10)
  const pair: Pair = { one: [], other: [] }
  for (let round = 0; round < rounds + warm; round += 1) {
    const order = round % 2 === 0 ? (['one', 'other'] as const) : (['other', 'one'] as const)
    for (const side of order) {
      const tookMs = await sides[side]()
      if (round >= warm) pair[side].push(tookMs)
    }
  }
  return pair
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now()
  await work()
  return performance.now() - beganMs
}

/** One line: medians and p99 of both, the difference of the medians, and the median of the differences within rounds. */
export function lineOf(what: string, { one, other }: Pair): string {
  const [a, b] = [quantile(one, 0.5), quantile(other, 0.5)]
  const within = quantile(
    other.map((ms, round) => ms - (one[round] ?? ms)),
    0.5,
  )
  const figures = [a, b, quantile(one, 0.99), quantile(other, 0.99)].map((ms) => ms.toFixed(2).padStart(9))
  const share = `${(((b - a) / a) * 100).toFixed(1)} %`.padStart(8)
  return `${what.padEnd(28)}${figures.join('')}${(b - a).toFixed(2).padStart(9)}${share}${within.toFixed(2).padStart(10)}`
}

export function headOf(one: string, other: string): string {
  const columns = [`p50 ${one}`, other, `p99 ${one}`, other, 'more'].map((name) =>
    name.padStart(9).slice(0, 9),
  )
  return `${'ms'.padEnd(28)}${columns.join('')}${'share'.padStart(8)}${'in rounds'.padStart(10)}`
}

export function quantile(took: number[], share: number): number {
  return took.toSorted((one, other) => one - other)[Math.floor(took.length * share)] ?? 0
}
