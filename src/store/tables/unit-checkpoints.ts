// The columns of `unit_checkpoints` (store/unit-checkpoints.ts).

export type UnitCheckpointsTable = {
  unit_id: string
  /** Of the run whose memory it is. */
  generation: number
  at: Date
  /** False: it was tried, and the memory is lost. */
  kept: boolean
}
