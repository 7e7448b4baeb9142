// Lengths of time as people read them, in the dashboard and on the pages of the server.

/** `3 s`, `14 min`, `2 h`, `5 days`. */
export function span(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`
}

/** `2 h ago`, `now`, `in 14 min`: where a moment is, seen from another. */
export function fromNow(at: string, now: number): string {
  const ms = new Date(at).getTime() - now
  if (Math.abs(ms) < 10_000) return 'now'
  return ms < 0 ? `${span(ms)} ago` : `in ${span(ms)}`
}
