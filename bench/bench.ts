// npm run bench: this service, the ceiling and its peers, in one run.
import { parseArgs } from 'node:util'
import { figure, measureMixed, measureRow, type Result, sample, type Subject } from './measure.ts'
import { ROWS } from './rows.ts'
import { newDatabase, startCeiling, startService, timeToListen } from './subjects.ts'

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, rows: { type: 'string' } } })
const plan = values.quick ? { rounds: 2, seconds: 1, warmUpSeconds: 1 } : { rounds: 7, seconds: 2, warmUpSeconds: 2 }
const rows = values.rows === undefined ? ROWS : ROWS.filter(({ id }) => values.rows!.split(',').includes(id))
await using readDatabase = await newDatabase(1000)
await using writeDatabase = await newDatabase(1000)
const starts: number[] = []
for (let i = 0; i < 5; i++) starts.push(await timeToListen(readDatabase))
process.stdout.write(`start ${JSON.stringify(figure(starts))}\n`)
await using read = await startService(readDatabase)
await using write = await startService(writeDatabase)
const answers = []
for (const row of rows) answers.push(await sample(row, row.writes ? write : read))
await using ceiling = await startCeiling(rows, answers)
const subjects: Subject[] = [
  { name: 'ceiling', servers: { read: ceiling, write: ceiling }, takes: () => true },
  { name: 'petstore', servers: { read, write }, takes: () => true },
]
const results: Result[] = []
for (const row of rows) {
  const r = await measureRow(row, subjects, plan)
  results.push(...r)
  for (const x of r) process.stdout.write(`${row.title.padEnd(40)} ${x.subject.padEnd(10)} ${x.perSecond.median.toFixed(0)} ${x.ofCeiling?.median.toFixed(2)} ${x.ofCeiling?.low.toFixed(2)}-${x.ofCeiling?.high.toFixed(2)} p99 ${x.p99.median}\n`)
}
if (values.rows === undefined) process.stdout.write(JSON.stringify(await measureMixed(ROWS[0]!, ROWS.find((r) => r.id === 'create')!, write, plan), null, 1))
