// Two servers of Debian's PostgreSQL: a primary, and a synchronous standby that has every commit before the client gets its answer.
import type { ChildProcess } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { askPostgres } from '../harness/ask-postgres.ts'
import { freePort } from '../harness/free-port.ts'
import { killHard, run, start } from '../harness/processes.ts'
import { until } from '../harness/until.ts'
import { makeFolder, postgresUser, PROGRAMS } from './debian-postgres.ts'

const USER = 'petstore'
const STANDBY = 'standby'
/** A standby that is promoted just as it loses its primary may first wait this long; the default is 5 s. */
const RETRY_INTERVAL = 'wal_retrieve_retry_interval=100ms'

interface Node {
  folder: string
  port: number
  process: ChildProcess | undefined
}

export class PostgresPair {
  readonly #folder: string
  readonly #user = postgresUser()
  #primary: Node
  #standby: Node

  static async start(folder: string): Promise<PostgresPair> {
    const pair = new PostgresPair(folder, await freePort(), await freePort())
    makeFolder(folder)
    pair.#run('initdb', [
      '--pgdata',
      pair.#primary.folder,
      '--username',
      USER,
      '--auth',
      'trust',
      '--encoding',
      'UTF8',
      '--no-locale',
    ])
    await pair.#startNode(pair.#primary)
    await askPostgres(addressOf(pair.#primary), `CREATE DATABASE ${USER}`)
    await pair.addStandby()
    return pair
  }

  private constructor(folder: string, firstPort: number, secondPort: number) {
    this.#folder = folder
    this.#primary = { folder: join(folder, 'a'), port: firstPort, process: undefined }
    this.#standby = { folder: join(folder, 'b'), port: secondPort, process: undefined }
  }

  /** An address with both hosts: the service finds out which of them accepts writes. */
  get url(): string {
    const hosts = [this.#primary, this.#standby]
      .map(({ port }) => `127.0.0.1:${port}`)
      .toSorted()
      .join(',')
    return `postgres://${USER}@${hosts}/${USER}?target_session_attrs=read-write`
  }

  /**
   * Copies the primary and starts the copy as its synchronous standby: from then on each commit waits for the standby.
   * Sets synchronous_standby_names only after the copy was made. Otherwise the copy would inherit the setting, and once
   * promoted would wait forever for a standby that it does not have.
   */
  async addStandby(): Promise<void> {
    const { folder } = this.#standby
    rmSync(folder, { recursive: true, force: true })
    const source = `host=127.0.0.1 port=${this.#primary.port} user=${USER} application_name=${STANDBY}`
    this.#run('pg_basebackup', ['--pgdata', folder, '--write-recovery-conf', '--checkpoint=fast', '--dbname', source])
    await this.#startNode(this.#standby)
    await askPostgres(addressOf(this.#primary), `ALTER SYSTEM SET synchronous_standby_names = '${STANDBY}'`)
    await askPostgres(addressOf(this.#primary), 'SELECT pg_reload_conf()')
    await until(async () => {
      const rows = await askPostgres(addressOf(this.#primary), 'SELECT sync_state FROM pg_stat_replication')
      return rows[0]?.['sync_state'] === 'sync'
    }, 'the standby follows synchronously')
  }

  /** Kills every process of the primary with SIGKILL. */
  async killPrimary(): Promise<void> {
    await killHard(this.#primary.process!)
  }

  /** Promotes the standby. The killed primary takes its place until addStandby replaces it. */
  promote(): void {
    this.#run('pg_ctl', ['promote', '--pgdata', this.#standby.folder, '--no-wait'])
    ;[this.#primary, this.#standby] = [this.#standby, this.#primary]
  }

  async #startNode(node: Node): Promise<void> {
    const settings = [
      `port=${node.port}`,
      'listen_addresses=127.0.0.1',
      `unix_socket_directories=${this.#folder}`,
      'synchronous_commit=on',
      RETRY_INTERVAL,
    ]
    const parameters = ['-D', node.folder, ...settings.flatMap((setting) => ['-c', setting])]
    node.process = start(join(PROGRAMS, 'postgres'), parameters, { user: this.#user, log: `${node.folder}.log` })
    await until(
      async () => (await askPostgres(addressOf(node), 'SELECT 1')).length === 1,
      `PostgreSQL answers on port ${node.port}`,
    )
  }

  #run(program: string, parameters: readonly string[]): string {
    return run(join(PROGRAMS, program), parameters, { user: this.#user })
  }
}

function addressOf({ port }: Node): string {
  return `postgres://${USER}@127.0.0.1:${port}/postgres`
}
