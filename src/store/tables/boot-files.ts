// The columns of `boot_files` (store/boot-files.ts).

export type BootFilesTable = { unit_id: string; path: string; sealed: Buffer }
