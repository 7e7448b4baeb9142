// Samples to medians, medians to a table.

import { setTimeout as delay } from 'node:timers/promises'

export type Figures = Record<string, number[]>
export type Results = { column: string; figures: Figures }

export type Actions = {
  create: () => Promise<string>
  exec: (id: string) => Promise<unknown>
  destroy: (id: string) => Promise<unknown>
}

export const AT_ONCE = 10
/** Less than an agent thinks between two commands. */
const PAUSE_MS = 100

/** The same steps for each engine that carries them out. The first create, which may build or load, is not counted. */
export async function measure(rounds: number, { create, exec, destroy }: Actions): Promise<Figures> {
  await destroy(await create())
  const figures = {
    'create to running': [] as number[],
    'first exec': [] as number[],
    'create to first command answered': [] as number[],
    exec: [] as number[],
    'exec, after a pause': [] as number[],
    destroy: [] as number[],
    'ten creates at once': [] as number[],
  }
  for (let round = 0; round < rounds; round += 1) {
    const id = await timed(figures['create to first command answered'], async () => {
      const made = await timed(figures['create to running'], create)
      await timed(figures['first exec'], () => exec(made))
      return made
    })
    for (let again = 0; again < 3; again += 1) await timed(figures.exec, () => exec(id))
    for (let again = 0; again < 3; again += 1) {
      await delay(PAUSE_MS)
      await timed(figures['exec, after a pause'], () => exec(id))
    }
    await timed(figures.destroy, () => destroy(id))
  }
  for (let round = 0; round < Math.max(3, Math.ceil(rounds / 6)); round += 1) {
    const ids = await timed(figures['ten creates at once'], () =>
      Promise.all(Array.from({ length: AT_ONCE }, create)),
    )
    await Promise.all(ids.map(destroy))
  }
  return figures
}

/** Adds to the samples how many milliseconds the action took. */
export async function timed<T>(samples: number[], action: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const value = await action()
  samples.push(performance.now() - start)
  return value
}

export function percentile(samples: number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

/** A row a figure, a column who; `p50 / p95` in milliseconds. */
export function formatTable(results: Results[]): string {
  const rows = [...new Set(results.flatMap(({ figures }) => Object.keys(figures)))]
  const cell = (samples: number[] | undefined) =>
    samples ? `${percentile(samples, 0.5).toFixed(1)} / ${percentile(samples, 0.95).toFixed(1)}` : '-'
  const lines = [
    ['ms, p50 / p95', ...results.map(({ column }) => column)],
    ['---', ...results.map(() => '---')],
    ...rows.map((row) => [row, ...results.map(({ figures }) => cell(figures[row]))]),
  ]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
