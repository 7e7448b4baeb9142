// The columns of `heartbeats` (store/heartbeats.ts).

export type HeartbeatsTable = { id: string; at: Date; boot: string; offset_ms: number }
