// What units use, now and over a day or a month.

import { type OperationDoc, sseExample } from './doc.ts'
import { free } from './units.ts'
import { startedAt, unit } from './values.ts'

const metrics = {
  unitId: unit.id,
  state: 'running',
  at: startedAt,
  run: {
    startedAt,
    cpu: { usedMs: 5310, limitedMs: 120, limitCpus: 0.5 },
    memory: {
      usedBytes: 61_341_696,
      cacheBytes: 8_912_896,
      peakBytes: 94_371_840,
      limitBytes: 536_870_912,
    },
    pids: { count: 11, limit: 1024 },
    network: { receivedBytes: 20_480, sentBytes: 512_000 },
    io: { readBytes: 4_096_000, writtenBytes: 1_048_576 },
  },
  disk: { usedBytes: 23_592_960, limitBytes: 5_368_709_120 },
  volume: null,
}

export const metricsDocs: Record<string, OperationDoc> = {
  unitMetrics: {
    events: sseExample([{ event: 'sample', data: metrics }]),
    answer:
      'What the unit uses now. Counters start at 0 with its machine: the difference of two answers is what the unit used between them.',
    cost: free,
    errors: { 409: 'The unit is destroyed.', 502: 'The host did not answer; send the call again.' },
    response: metrics,
  },
  unitMetricsHistory: {
    answer:
      'A point for each minute or hour in which the unit ran. Memory is the most of its samples, the rest what was used in that step.',
    cost: free,
    response: {
      unitId: unit.id,
      range: 'day',
      from: '2026-05-03T09:01:00.000Z',
      until: startedAt,
      stepSeconds: 60,
      limitCpus: 0.5,
      points: [
        {
          at: '2026-05-04T08:59:00.000Z',
          cpuMs: 1840,
          memoryBytes: 61_341_696,
          receivedBytes: 20_480,
          sentBytes: 512_000,
        },
      ],
      checkpoints: [{ at: '2026-05-04T03:12:00.000Z', kept: true }],
    },
  },
  unitMetricsRecent: {
    answer:
      'An entry for each unit that ran in the last day, with 24 steps of an hour, the current one last.',
    cost: free,
    response: {
      from: '2026-05-03T10:00:00.000Z',
      stepSeconds: 3600,
      units: [{ id: unit.id, cpuMs: [...Array.from({ length: 22 }, () => null), 2310, 5310] }],
    },
  },
}
