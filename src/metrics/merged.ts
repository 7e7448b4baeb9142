// One page of metrics from those of several processes, whose samples differ by a label: Prometheus wants all samples of a
// metric together, and its help and type once.

/** The texts are those of registries, in Prometheus' format. */
export function mergeMetrics(texts: string[]): string {
  const metrics = new Map<string, { head: string[]; samples: string[] }>()
  for (const text of texts) {
    let current: { head: string[]; samples: string[] } | null = null
    const isFirst = new Set<string>()
    for (const line of text.split('\n')) {
      const name = /^# (?:HELP|TYPE) (\S+)/.exec(line)?.[1]
      if (name === undefined) {
        if (line !== '') current?.samples.push(line)
        continue
      }
      if (!metrics.has(name)) {
        metrics.set(name, { head: [], samples: [] })
        isFirst.add(name)
      }
      current = metrics.get(name) ?? null
      if (isFirst.has(name)) current?.head.push(line)
    }
  }
  return [...metrics.values()].map(({ head, samples }) => `${[...head, ...samples].join('\n')}\n`).join('\n')
}
