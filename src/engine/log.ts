// Lines that machines print, as the engine stores them.

/** `continues`: the line is too long, and continues in the next line of its stream. */
export type LogLine = {
  at: Date
  stream: 'stdout' | 'stderr'
  text: string
  continues?: true | undefined
  cursor: string
}

export type LogQuery = {
  /** Lines after this cursor, or from this time on. Without both: the newest `limit` lines. */
  after: string | null
  since: Date | null
  /** Only lines of this run. */
  generation?: number | undefined
  limit: number
}
