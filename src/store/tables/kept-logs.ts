// The columns of `kept_logs` (store/kept-logs.ts).

export type KeptLogsTable = { unit_id: string; team_id: string; kept_at: Date; sealed: Buffer }
