// Parses a line that conmon wrote: `<RFC 3339 time> <stream> <P|F> <text>`; P marks a line that continues.

export type ParsedLine = { at: Date; stream: 'stdout' | 'stderr'; partial: boolean; text: string }

export function parseLogLine(line: string): ParsedLine | null {
  const match = /^(\S{20,40}) (stdout|stderr) ([PF]) ?(.*)$/su.exec(line)
  if (!match) return null
  // Nanoseconds exceed the precision of a Date.
  const at = new Date((match[1] ?? '').replace(/(\.\d{3})\d*/, '$1'))
  if (Number.isNaN(at.getTime())) return null
  return {
    at,
    stream: match[2] === 'stderr' ? 'stderr' : 'stdout',
    partial: match[3] === 'P',
    text: match[4] ?? '',
  }
}
