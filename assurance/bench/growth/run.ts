// npm run bench growth: measures the cost of a page and of a create in stores of a thousand to ten million animals.
//   --max 1e6          stop at fewer animals, for a shorter run
//   --engine sqlite    one engine only (sqlite, postgresql); the others' figures in docs stay as they are
// Calls the store directly: the HTTP layer's cache would hide the cost of the engine.
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { say } from '../../harness/say.ts'
import { growAll } from './databases.ts'
import { ENGINES } from './engines.ts'
import { type EngineGrowth, measureAll } from './measure.ts'
import { drawGrowth } from './plot.ts'
import { growthTable, withinLimit } from './report.ts'

const DOCS = new URL('../../../docs/', import.meta.url)
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
    engine: engine.name,
    version: server.version,
    sizes: sizes,
    measures: await measureAll(grown.stores),
  })
}

process.stdout.write(results.map(growthTable).join('\n'))
if (max === LARGEST) {
  const before = JSON.parse(readFileSync(new URL('growth.json', DOCS), 'utf8')) as EngineGrowth[]
  const known = before.map((growth) => results.find(({ engine }) => engine === growth.engine) ?? growth)
  writeFileSync(new URL('growth.svg', DOCS), drawGrowth(known))
  writeFileSync(new URL('growth.json', DOCS), `${JSON.stringify(known, null, 2)}\n`)
  say('Written: docs/growth.svg, docs/growth.json')
}
process.exitCode = results.every(withinLimit) ? 0 : 1
