// A reporter (node --test-reporter): prints the ten slowest tests and test files at the end of a run.
import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

const SHOWN = 10

interface Timed {
  name: string
  ms: number
}

export default async function* slowest(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const tests: Timed[] = []
  const files: Timed[] = []
  for await (const { type, data } of events) {
    // With a process for each file, every file has a summary, and the whole run has one without a file.
    if (type === 'test:summary' && data.file !== undefined)
      files.push({ name: shortPath(data.file), ms: data.duration_ms })
    if ((type === 'test:pass' || type === 'test:fail') && data.details.type !== 'suite')
      tests.push({ name: `${data.name} (${shortPath(data.file ?? '')})`, ms: data.details.duration_ms })
  }
  yield list('The slowest tests', tests)
  yield list('The slowest test files', files)
}

function shortPath(file: string): string {
  return relative(process.cwd(), file)
}

function list(title: string, timed: Timed[]): string {
  const lines = timed
    .toSorted((one, other) => other.ms - one.ms)
    .slice(0, SHOWN)
    .map(({ name, ms }) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${name}\n`)
  return `\n${title}\n${lines.join('')}`
}
