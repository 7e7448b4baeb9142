// Lines of a log as the page shows them, and the search in what is loaded.

import type { NumberedLine } from './use-log.ts'

export type Shown = 'all' | 'stdout' | 'stderr'

/** What a terminal would take for colours and moves of its cursor. */
// oxlint-disable-next-line no-control-regex
const escapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g

export const plainText = (text: string) => text.replaceAll(escapes, '').replace(/\r$/, '')

export function selectLines(
  lines: readonly NumberedLine[],
  { text, stream }: { text: string; stream: Shown },
): readonly NumberedLine[] {
  const sought = text.toLowerCase()
  if (sought === '' && stream === 'all') return lines
  return lines.filter(
    (line) =>
      (stream === 'all' || line.stream === stream) &&
      (sought === '' || plainText(line.text).toLowerCase().includes(sought)),
  )
}

/** As a file. */
export const fileOf = (lines: readonly NumberedLine[]) =>
  lines.map(({ at, stream, text }) => `${at} ${stream} ${text}\n`).join('')
