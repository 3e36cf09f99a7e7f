// A progress bar, shown only on a terminal.
import type { Terminal } from './terminal.ts'

const BAR_WIDTH = 30
const CLEAR_LINE = '\r\u001B[K'

export function showProgress({ stderr }: Terminal, done: number, all: number, step = ''): void {
  if (!stderr.isTTY) return
  const filled = Math.round((done / all) * BAR_WIDTH)
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)
  stderr.write(`${CLEAR_LINE}${bar} ${done} of ${all}${step && `  ${step}`}${done === all ? '\n' : ''}`)
}

/** Makes room for a message where a bar may stand. */
export function clearProgress({ stderr }: Terminal): void {
  if (stderr.isTTY) stderr.write(CLEAR_LINE)
}

/** Returns a function that says how fast the work goes since now, and how long it will still take. */
export function startRate(): (done: number, all: number) => string {
  const started = performance.now()
  return (done, all) => {
    const rate = done / ((performance.now() - started) / 1000)
    const left = Math.ceil((all - done) / rate)
    return `${Math.round(rate)}/s, ${left < 60 ? `${left} s` : `${Math.ceil(left / 60)} min`} left`
  }
}
