// Formats tables for the operator's commands.

/** The first row is the heading. */
export function formatTable(rows: string[][]): string[] {
  const widths = (rows[0] ?? []).map((_cell, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
