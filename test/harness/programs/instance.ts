// Starts an instance of the service as a separate process, as in production, and creates API keys for it.
import { type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { freePort } from '../connections/free-port.ts'
import { firstLine, hasEnded, run, start } from './processes.ts'
import { until } from '../until.ts'

export const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const PASSWORD = 'correct horse battery'

export interface Instance {
  port: number
  url: string
  process: ChildProcess
}

export interface InstanceOptions {
  /** Default: a free port. */
  port?: number
  /** Further settings, as environment variables. */
  env?: Record<string, string>
  /** Default: the program of this checkout. */
  main?: string
}

/** Starts an instance that logs to this file; resolves when it is ready. */
export async function startInstance(database: string, log: string, options: InstanceOptions = {}): Promise<Instance> {
  const port = options.port ?? (await freePort())
  const url = `http://127.0.0.1:${port}`
  const child = launchInstance(database, log, port, options.env, options.main)
  await until(async () => hasEnded(child) || (await fetch(`${url}/readyz`)).ok, 'the instance is ready')
  if (hasEnded(child)) throw new Error(`the instance ended: ${readFileSync(log, 'utf8').slice(-1000)}`)
  return { port, url, process: child }
}

/** Starts an instance without waiting until it is ready. */
export function launchInstance(
  database: string,
  log: string,
  port: number,
  env: Record<string, string> = {},
  main = MAIN,
): ChildProcess {
  return start(process.execPath, [main, 'serve'], {
    env: { ...settings(database), HOST: '127.0.0.1', PORT: String(port), ...env },
    log,
  })
}

/** Reads from an instance's log on standard output where it listens; adds every log line to `lines`, also later ones. */
export async function listening(
  child: ChildProcess,
  lines: Record<string, unknown>[] = [],
): Promise<{ url: string; admin?: string }> {
  return firstLine(child, (line) => {
    const entry = JSON.parse(line) as { msg: string; url: string; admin?: string }
    lines.push(entry)
    return entry.msg === 'listening' ? entry : undefined
  })
}

/** Runs a command of the CLI on this database and returns what it printed. */
export function petstore(database: string, words: readonly string[], input = '', main = MAIN): string {
  return run(process.execPath, [main, ...words], { env: settings(database) }, input)
}

export function settings(database: string): Record<string, string> {
  return { DATABASE_URL: database, PETSTORE_ENVIRONMENT: 'staging' }
}

/** Creates an account and a key with the commands of the CLI; `command` runs one and returns what it printed. */
export async function makeKey(
  command: (words: readonly string[], input?: string) => string | Promise<string>,
): Promise<{ id: string; key: string }> {
  const email = `someone-${process.hrtime.bigint()}@example.com`
  await command(['account', 'create', email, '--password-stdin'], PASSWORD)
  return JSON.parse(await command(['key', 'create', '--account', email, '--name', 'test', '--json'])) as {
    id: string
    key: string
  }
}

/** Creates an account in this database and returns a key for it. */
export async function createKey(database: string, main = MAIN): Promise<string> {
  return (await makeKey((words, input) => petstore(database, words, input, main))).key
}
