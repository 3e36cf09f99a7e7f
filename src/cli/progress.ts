// A progress bar, shown only on a terminal.
import type { Terminal } from './terminal.ts'

const BAR_WIDTH = 30

export function showProgress({ stderr }: Terminal, done: number, all: number, step = ''): void {
  if (!stderr.isTTY) return
  const filled = Math.round((done / all) * BAR_WIDTH)
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)
  stderr.write(`\r${bar} ${done} of ${all}${step && `  ${step}`}${done === all ? '\n' : ''}`)
}
