// Starts Caddy in front of the instances, with the Caddyfile of deploy/.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../harness/free-port.ts'
import { start } from '../harness/processes.ts'
import { until } from '../harness/until.ts'

export const CADDY = '/usr/bin/caddy'

const CADDYFILE = fileURLToPath(new URL('../deploy/Caddyfile', import.meta.url))

/** Starts Caddy without TLS and returns its address. */
export async function startCaddy(folder: string, ports: readonly number[]): Promise<string> {
  const url = `http://127.0.0.1:${await freePort()}`
  const env = {
    HOME: folder,
    PETSTORE_DOMAIN: url,
    PETSTORE_UPSTREAMS: ports.map((port) => `127.0.0.1:${port}`).join(' '),
  }
  start(CADDY, ['run', '--config', CADDYFILE], { env, log: join(folder, 'caddy.log') })
  await until(async () => (await fetch(`${url}/readyz`)).ok, 'Caddy finds the instances ready')
  return url
}
