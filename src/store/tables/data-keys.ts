// The columns of `data_keys` (store/data-keys.ts).

export type DataKeysTable = { id: string; sealed: Buffer; sealed_by: string }
