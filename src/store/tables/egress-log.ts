// The columns of `egress_log` (store/egress-log.ts).

export type EgressLogTable = {
  unit_id: string
  minute: Date
  host: string
  port: number
  protocol: string
  decision: string
  reason: string
  rule: string
  secret: string
  address: string
  bytes_in: bigint
  bytes_out: bigint
  count: bigint
  changed: bigint
}
