// The directory or file that the files page of a unit shows, kept in the URL.

export type FilesSearch = { path?: string; file?: string }

/** Paths are absolute; anything else is left out. */
export function readFilesSearch({ path, file }: Record<string, unknown>): FilesSearch {
  const isPath = (value: unknown): value is string => typeof value === 'string' && value.startsWith('/')
  return { ...(isPath(path) ? { path } : {}), ...(isPath(file) ? { file } : {}) }
}
