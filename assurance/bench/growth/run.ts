// npm run bench growth: measures the cost of a page and of a create in stores of a thousand to ten million animals.
//   --max 1e6          stop at fewer animals, for a shorter run
//   --engine sqlite    one engine only (sqlite, postgresql)
// Calls the store directly: the HTTP layer's cache would hide the cost of the engine.
import { parseArgs } from 'node:util'
import { say } from '../../../test/harness/say.ts'
import { growAll } from './databases.ts'
import { ENGINES } from './engines.ts'
import { type EngineGrowth, type Measured, measureAll } from './measure.ts'

/** The highest allowed ratio of the cost of a page or create with the most animals to its cost with the fewest. */
const FLAT = 1.3
const SMALLEST = 1000
const LARGEST = 10_000_000

const { values } = parseArgs({ options: { max: { type: 'string' }, engine: { type: 'string' } } })
const max = values.max === undefined ? LARGEST : Number(values.max)
if (!(max >= SMALLEST * 10))
  throw new Error(`--max must be a number from ${SMALLEST * 10} on, such as 1e6, got ${values.max}.`)
const sizes: number[] = []
for (let size = SMALLEST; size <= max; size *= 10) sizes.push(size)
const engines = ENGINES.filter(
  ({ name }) => values.engine === undefined || name.toLowerCase() === values.engine.toLowerCase(),
)

const results: EngineGrowth[] = []
for (const engine of engines) {
  await using server = await engine.start()
  await using grown = await growAll(server, sizes)
  await server.settle()
  say(`${engine.name}: measuring`)
  results.push({
    version: server.version,
    sizes,
    measures: await measureAll(grown.stores),
  })
}

process.stdout.write(results.map(growthTable).join('\n'))
process.exitCode = results.some(({ measures }) => measures.some(isAbove)) ? 1 : 0

/** Returns whether the cost is too high. Reads of one animal are not judged: they are so cheap that the processor's caches show in them. */
function isAbove({ kind, ratio }: Measured): boolean {
  return kind !== 'animal' && ratio.at(-1)! > FLAT
}

/** Renders a Markdown table, which can be pasted into the documentation. */
function growthTable({ version, sizes: columns, measures }: EngineGrowth): string {
  const head = [version, ...columns.map((size) => size.toLocaleString('en')), 'last : first']
  const rows = measures.map((measured) => [
    measured.name,
    ...measured.microseconds.map((value) => `${value.toFixed(value < 100 ? 1 : 0)} µs`),
    `${measured.ratio.at(-1)!.toFixed(2)}${isAbove(measured) ? ` > ${FLAT}` : ''}`,
  ])
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows]
  return lines.map((line) => `| ${line.join(' | ')} |\n`).join('')
}
