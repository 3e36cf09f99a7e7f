// Measures the bare PostgreSQL driver, without HTTP, with the statements of driver-work.ts and as many of them in
// flight as the load has connections.
import { type DriverWork, openDriver } from './driver-work.ts'
import { CONNECTIONS } from './load.ts'

const [url, work, seconds, poolSize] = process.argv.slice(2) as [string, DriverWork, string, string]
const driver = openDriver(url, Number(poolSize))

let done = 0
let until = Number.POSITIVE_INFINITY

async function repeat(): Promise<void> {
  while (performance.now() < until) {
    await driver.run[work]()
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
await driver.end()
