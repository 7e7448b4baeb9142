// One value that code gave, in the best of its forms. All of it comes from the unit: text is shown as text, pictures as pictures, and
// HTML in a frame that may do nothing, of no origin.

import { dataUrl } from './data-url.ts'
import styles from './code.module.css'

type Data = Readonly<Record<string, unknown>>

const TABLE = 'application/vnd.dataresource+json'
const pictures = ['image/png', 'image/jpeg'] as const
const texts = ['text/markdown', 'text/latex', 'text/plain'] as const

export function CodeValue({ data }: { data: Data }) {
  const table = tableIn(data[TABLE])
  if (table) return <Table {...table} alt={textOf(data)} />
  const picture = pictures.find((mime) => typeof data[mime] === 'string')
  if (picture)
    return (
      <img
        className={styles.picture}
        src={`data:${picture};base64,${String(data[picture]).replaceAll(/\s/g, '')}`}
        alt={textOf(data)}
      />
    )
  const svg = data['image/svg+xml']
  // As a picture it runs no scripts and loads nothing.
  if (typeof svg === 'string')
    return (
      <img
        className={styles.picture}
        src={dataUrl('image/svg+xml', new TextEncoder().encode(svg))}
        alt={textOf(data)}
      />
    )
  const html = data['text/html']
  if (typeof html === 'string')
    return (
      <iframe
        className={styles.frame}
        sandbox=""
        src={dataUrl('text/html;charset=utf-8', new TextEncoder().encode(html))}
        title={textOf(data)}
      />
    )
  const text = texts.map((mime) => data[mime]).find((value) => typeof value === 'string')
  const json = data['application/json']
  return <pre className={styles.text}>{text ?? JSON.stringify(json ?? data, null, 2)}</pre>
}

function textOf(data: Data): string {
  const text = data['text/plain']
  return typeof text === 'string' ? text.slice(0, 200) : 'A value'
}

type TableData = { columns: string[]; rows: unknown[][]; count: number }

const MAX_ROWS = 100

/** Null if that is no table. */
function tableIn(value: unknown): TableData | null {
  const { schema, data, rows } = (value ?? {}) as {
    schema?: { fields?: { name?: unknown }[] }
    data?: Record<string, unknown>[]
    rows?: unknown
  }
  if (!Array.isArray(schema?.fields) || !Array.isArray(data)) return null
  const columns = schema.fields.map(({ name }) => String(name))
  const shown = data.slice(0, MAX_ROWS).map((row) => columns.map((column) => row[column]))
  return { columns, rows: shown, count: typeof rows === 'number' ? rows : data.length }
}

/** Of a cell: text as it is, all else as JSON. */
function textIn(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function Table({ columns, rows, count, alt }: TableData & { alt: string }) {
  return (
    <div className={styles.table} tabIndex={0} role="region" aria-label={alt}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((value, column) => (
                <td key={columns[column]}>{textIn(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {count > rows.length && (
        <p className={styles.quiet}>
          The first {rows.length} of {count} rows.
        </p>
      )}
    </div>
  )
}
