// Debian's PostgreSQL, twice: a primary, and a standby that has every commit before the client hears of it.
import type { ChildProcess } from 'node:child_process'
import { chownSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import { freePort } from '../test/free-port.ts'
import { killHard, run, start, until } from './processes.ts'

const PROGRAMS = '/usr/lib/postgresql/15/bin'
export const POSTGRES_PROGRAMS = ['postgres', 'initdb', 'pg_basebackup', 'pg_ctl'].map((name) => join(PROGRAMS, name))

const USER = 'petstore'
const STANDBY = 'standby'

interface Node {
  folder: string
  port: number
  process: ChildProcess | undefined
}

export class PostgresPair {
  readonly #folder: string
  /** PostgreSQL refuses to run as root. */
  readonly #user = process.getuid?.() === 0 ? owner() : undefined
  #primary: Node
  #standby: Node

  static async start(folder: string): Promise<PostgresPair> {
    const pair = new PostgresPair(folder, await freePort(), await freePort())
    pair.#ownFolder(folder)
    pair.#run('initdb', ['--pgdata', pair.#primary.folder, '--username', USER, '--auth', 'trust', '--encoding', 'UTF8', '--no-locale'])
    await pair.#startNode(pair.#primary)
    await ask(pair.#primary, 'postgres', `CREATE DATABASE ${USER}`)
    await pair.addStandby()
    return pair
  }

  private constructor(folder: string, firstPort: number, secondPort: number) {
    this.#folder = folder
    this.#primary = { folder: join(folder, 'a'), port: firstPort, process: undefined }
    this.#standby = { folder: join(folder, 'b'), port: secondPort, process: undefined }
  }

  /** Both hosts: the service finds out which of them takes writes. */
  get url(): string {
    const hosts = [this.#primary, this.#standby].map(({ port }) => `127.0.0.1:${port}`).toSorted().join(',')
    return `postgres://${USER}@${hosts}/${USER}?target_session_attrs=read-write`
  }

  get version(): string {
    return this.#run('postgres', ['--version']).trim()
  }

  /**
   * Copies the primary and lets the copy follow it; from then on a commit waits for it. The primary is told so only
   * after the copy was made: else the copy would inherit the order to wait, and once promoted would wait for ever for
   * a standby that it does not have.
   */
  async addStandby(): Promise<void> {
    const { folder } = this.#standby
    rmSync(folder, { recursive: true, force: true })
    const source = `host=127.0.0.1 port=${this.#primary.port} user=${USER} application_name=${STANDBY}`
    this.#run('pg_basebackup', ['--pgdata', folder, '--write-recovery-conf', '--checkpoint=fast', '--dbname', source])
    await this.#startNode(this.#standby)
    await ask(this.#primary, 'postgres', `ALTER SYSTEM SET synchronous_standby_names = '${STANDBY}'`)
    await ask(this.#primary, 'postgres', 'SELECT pg_reload_conf()')
    await until('the standby follows synchronously', async () => {
      const rows = await ask(this.#primary, 'postgres', 'SELECT sync_state FROM pg_stat_replication')
      return rows[0]?.['sync_state'] === 'sync'
    })
  }

  /** kill -9 of the primary and every process of it. */
  async killPrimary(): Promise<void> {
    await killHard(this.#primary.process!)
  }

  /** The standby becomes the primary, and the place of the standby is free. */
  promote(): void {
    this.#run('pg_ctl', ['promote', '--pgdata', this.#standby.folder, '--no-wait'])
    ;[this.#primary, this.#standby] = [this.#standby, this.#primary]
  }

  async #startNode(node: Node): Promise<void> {
    const settings = [`port=${node.port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${this.#folder}`, 'synchronous_commit=on']
    const parameters = ['-D', node.folder, ...settings.flatMap((setting) => ['-c', setting])]
    node.process = start(join(PROGRAMS, 'postgres'), parameters, { log: `${node.folder}.log`, ...(this.#user && { user: this.#user }) })
    await until(`PostgreSQL answers on port ${node.port}`, async () => (await ask(node, 'postgres', 'SELECT 1')).length === 1)
  }

  #run(program: string, parameters: readonly string[]): string {
    return run(join(PROGRAMS, program), parameters, this.#user && { user: this.#user })
  }

  #ownFolder(folder: string): void {
    mkdirSync(folder, { recursive: true })
    if (this.#user !== undefined) chownSync(folder, this.#user.uid, this.#user.gid)
  }
}

/** The user that Debian's package makes. */
function owner(): { uid: number; gid: number } {
  return { uid: Number(run('id', ['-u', 'postgres'])), gid: Number(run('id', ['-g', 'postgres'])) }
}

async function ask({ port }: Node, database: string, query: string): Promise<Record<string, unknown>[]> {
  const sql = postgres({ host: '127.0.0.1', port, user: USER, database, max: 1, connect_timeout: 5, onnotice: () => {} })
  try {
    return await sql.unsafe(query)
  } finally {
    await sql.end({ timeout: 1 })
  }
}
