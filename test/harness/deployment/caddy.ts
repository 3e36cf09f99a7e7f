// Starts Caddy in front of the instances, with the Caddyfile of deploy/.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deployedFor } from './deployed.ts'
import { freePort } from '../connections/free-port.ts'
import { keptIn, start } from '../programs/processes.ts'
import { until } from '../until.ts'

export const CADDY = '/usr/bin/caddy'

/** Starts Caddy without TLS, in front of one instance or two, and returns its address. */
export async function startCaddy(folder: string, ports: readonly number[]): Promise<string> {
  const url = `http://127.0.0.1:${await freePort()}`
  const instances = ports.length === 1 ? 'one' : 'two'
  const env = { ...keptIn(folder), PETSTORE_DOMAIN: url, PETSTORE_INSTANCES: instances }
  const file = join(folder, 'Caddyfile')
  // With the log of requests that an operator may want.
  writeFileSync(file, deployedFor('Caddyfile', ports).replace('\theader ', '\tlog\n\theader '))
  start(CADDY, ['run', '--config', file], { env, log: join(folder, 'caddy.log') })
  await until(async () => (await fetch(`${url}/readyz`)).ok, 'Caddy finds the instances ready')
  return url
}
