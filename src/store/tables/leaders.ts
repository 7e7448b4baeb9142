// The columns of `leaders` (store/leaders.ts).

export type LeadersTable = { id: string; epoch: number; holder: string | null; renewed_at: Date }
