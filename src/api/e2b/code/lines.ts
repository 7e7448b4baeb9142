// Events of a run of code as the lines that clients of this interface read.

import type { CodeEnd, CodeFailure, CodeValue } from '../../../contract/code.ts'
import type { StreamEvent } from '../../http/sse.ts'

type Line = { type: string; [field: string]: unknown }

const forms: Record<string, string> = {
  'text/plain': 'text',
  'text/html': 'html',
  'text/markdown': 'markdown',
  'text/latex': 'latex',
  'image/svg+xml': 'svg',
  'image/png': 'png',
  'image/jpeg': 'jpeg',
  'application/pdf': 'pdf',
  'application/json': 'json',
  'application/javascript': 'javascript',
}
const CHART = 'application/vnd.berth.chart+json'
const TABLE = 'application/vnd.dataresource+json'

export function toLines({ event, data }: StreamEvent): Line[] {
  switch (event) {
    case 'stdout':
    case 'stderr':
      return [{ type: event, text: (data as { data: string }).data, timestamp: new Date().toISOString() }]
    case 'result':
      return [toResult(data as CodeValue)]
    case 'exception': {
      const { name, value, traceback } = data as CodeFailure
      return [{ type: 'error', name, value, traceback: traceback.join('\n') }]
    }
    case 'end':
      return [
        { type: 'number_of_executions', execution_count: (data as CodeEnd).executionCount ?? 0 },
        { type: 'end_of_execution' },
      ]
    default:
      return []
  }
}

function toResult({ data, main }: CodeValue): Line {
  const line: Line = { type: 'result', is_main_result: main }
  const extra: Record<string, unknown> = {}
  for (const [mime, value] of Object.entries(data)) {
    const name = forms[mime]
    if (mime === TABLE) line.data = columnsOf(value)
    else if (mime === CHART) line.chart = value
    else if (name === undefined) extra[mime] = value
    else line[name] = name === 'text' ? unquoted(String(value)) : value
  }
  if (Object.keys(extra).length > 0) line.extra = extra
  return line
}

/** A text stands for itself there. */
function unquoted(text: string): string {
  return /^(['"])[^]*\1$/.test(text) && text.length > 1 ? text.slice(1, -1) : text
}

/** The values of each column, by its name. */
function columnsOf(table: unknown): Record<string, unknown[]> {
  const { data: rows = [] } = table as { data?: Record<string, unknown>[] }
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  return Object.fromEntries(names.map((name) => [name, rows.map((row) => row[name] ?? null)]))
}
