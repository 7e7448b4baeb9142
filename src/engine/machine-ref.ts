// One run of a machine (engine.ts).

export type MachineRef = { id: string; generation: number }
