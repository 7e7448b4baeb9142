// A plain table of some dozens of rows. Narrow screens hide the columns that are marked so, instead of scrolling.

import type { ReactNode } from 'react'
import styles from './data-table.module.css'

export type Column<T> = {
  head: string
  cell: (row: T) => ReactNode
  /** `number` is set to the right. */
  kind?: 'text' | 'number'
  /** Left out on narrow screens. */
  isExtra?: boolean
}

export function DataTable<T>({
  label,
  columns,
  rows,
  keyOf,
}: {
  label: string
  columns: readonly Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string
}) {
  const classOf = ({ kind, isExtra }: Column<T>) =>
    [kind === 'number' ? styles.number : '', isExtra ? styles.extra : ''].filter(Boolean).join(' ') ||
    undefined
  return (
    <table className={styles.table} aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.head} scope="col" className={classOf(column)}>
              {column.head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column) => (
              <td key={column.head} className={classOf(column)}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
