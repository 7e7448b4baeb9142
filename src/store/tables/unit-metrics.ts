// The columns of `unit_metrics` (store/unit-metrics.ts).

export type UnitMetricsTable = {
  unit_id: string
  step: 'minute' | 'hour'
  at: Date
  /** Of the sample that was added last, with its counters since the start of that run. */
  generation: number
  cpu_total_ms: bigint
  received_total: bigint
  sent_total: bigint
  /** In this step. */
  cpu_ms: bigint
  memory_bytes: bigint
  received_bytes: bigint
  sent_bytes: bigint
}
