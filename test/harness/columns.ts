/** Renders a table for the terminal: the first column is aligned to the left, the others to the right. */
export function inColumns(lines: readonly (readonly string[])[]): string {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  const align = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)
  return lines.map((line) => `${line.map(align).join('  ').trimEnd()}\n`).join('')
}
