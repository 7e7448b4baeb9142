// What a unit uses, sampled while the page is in sight.

import type { Contract } from '@berth/sdk'
import { useState } from 'react'
import { berthOf } from '../api/client.ts'
import { useStream } from './use-stream.ts'

export type Metrics = Contract.UnitMetrics

/** Of five minutes. */
const KEPT_SAMPLES = 150

export function useMetrics({ team, unit }: { team: string; unit: Contract.Unit }) {
  const [samples, setSamples] = useState<readonly Metrics[]>([])
  const stream = useStream<Metrics>(`${team} ${unit.id}`, {
    open: (signal) => berthOf(team).units.of(unit).followMetrics({ signal }),
    hear: (sample) => setSamples((before) => [...before, sample].slice(-KEPT_SAMPLES)),
  })
  return { samples, ...stream }
}
