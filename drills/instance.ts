// One instance of the service as a process of its own, as it runs in production.
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { freePort } from '../test/free-port.ts'
import { run, start, until } from './processes.ts'

export const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const EMAIL = 'drill@example.com'

export interface Instance {
  port: number
  process: ChildProcess
}

export interface InstanceOptions {
  /** A free one is taken if none is given. */
  port?: number
  /** Further settings. */
  env?: Record<string, string>
}

export async function startInstance(database: string, log: string, options: InstanceOptions = {}): Promise<Instance> {
  const port = options.port ?? (await freePort())
  const child = launchInstance(database, log, port, options.env)
  await until('the instance is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok)
  return { port, process: child }
}

/** Starts an instance without waiting for it. */
export function launchInstance(
  database: string,
  log: string,
  port: number,
  env: Record<string, string> = {},
): ChildProcess {
  return start(process.execPath, [MAIN, 'serve'], {
    env: { ...settings(database), HOST: '127.0.0.1', PORT: String(port), ...env },
    log,
  })
}

/** An account and its key, by the commands that an operator would use. */
export function createKey(database: string): string {
  const petstore = (words: string[], input = '') =>
    run(process.execPath, [MAIN, ...words], { env: settings(database) }, input)
  petstore(['account', 'create', EMAIL, '--password-stdin'], 'a password for the drill')
  return petstore(['key', 'create', '--account', EMAIL, '--name', 'drill']).trim()
}

export function settings(database: string): Record<string, string> {
  return { DATABASE_URL: database, PETSTORE_ENVIRONMENT: 'staging' }
}

/** The lines of an instance's log about a database that was lost, found, switched or found outdated. */
export function databaseNews(log: string, since = new Date(0)): string[] {
  const lines = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { time: string; msg: string })
  return lines.filter(({ time, msg }) => msg.startsWith('database ') && new Date(time) >= since).map(({ msg }) => msg)
}
