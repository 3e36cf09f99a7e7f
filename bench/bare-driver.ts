// The bare PostgreSQL driver with the statements of the service: what it reaches with so many in flight, and no HTTP.
import postgres from 'postgres'
import { CONNECTIONS } from './load.ts'

export type DriverWork = 'list-20' | 'list-cold' | 'get' | 'create'

const [url, work, seconds, poolSize] = process.argv.slice(2) as [string, DriverWork, string, string]
const sql = postgres(url, { max: Number(poolSize), fetch_types: false, types: { bigint: postgres.BigInt }, onnotice: () => {} })

let below = 2_000_000n
const WORK: Record<DriverWork, () => Promise<unknown>> = {
  'list-20': () => sql`SELECT id, name, category_id AS "categoryId", status FROM pets WHERE TRUE ORDER BY id DESC LIMIT ${21}`,
  'list-cold': () => {
    below += 1n
    return sql`SELECT id, name, category_id AS "categoryId", status FROM pets WHERE id < ${below} ORDER BY id DESC LIMIT ${21}`
  },
  get: () => sql`SELECT id, name, category_id AS "categoryId", status FROM pets WHERE id = ${500n}`,
  create: () => sql`INSERT INTO pets (name, category_id, status) VALUES (${'Rex the Brave'}, ${3n}, ${'available'}) RETURNING id`,
}

let done = 0
let until = Number.POSITIVE_INFINITY

async function repeat(): Promise<void> {
  while (performance.now() < until) {
    await WORK[work]()
    done += 1
  }
}

const warmUp = performance.now() + 1000
until = warmUp
await Promise.all(Array.from({ length: CONNECTIONS }, repeat))
const started = performance.now()
done = 0
until = started + Number(seconds) * 1000
await Promise.all(Array.from({ length: CONNECTIONS }, repeat))
process.stdout.write(JSON.stringify({ perSecond: (done / (performance.now() - started)) * 1000 }))
await sql.end()
