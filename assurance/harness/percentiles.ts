// Summarises measured values: median with range, and percentiles.

export interface Figure {
  median: number
  low: number
  high: number
}

export function figure(values: readonly number[]): Figure {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  const median = (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2
  return { median, low: sorted[0]!, high: sorted.at(-1)! }
}

/** Renders the median, with the lowest and the highest value in brackets. */
export function spread({ median, low, high }: Figure, digits = 2): string {
  return `${median.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`
}

/** Returns the lowest value that at least this share of the values does not exceed, or NaN if there are no values. */
export function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? Number.NaN
}
