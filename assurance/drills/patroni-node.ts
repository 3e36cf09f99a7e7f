// A PostgreSQL server and the Patroni that manages it, as deploy/patroni.yaml describes them.
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/harness/connections/free-port.ts'
import { signalTree } from '../../test/harness/programs/process-tree.ts'
import { killAtExit, killHard, start } from '../../test/harness/programs/processes.ts'
import { makeFolder, postgresUser, PROGRAMS } from './debian-postgres.ts'

export const PATRONI = '/usr/bin/patroni'

/** The roles that Patroni creates. */
export const SUPERUSER = { name: 'postgres', password: 'drill-superuser' }
const REPLICATION = { name: 'replicator', password: 'drill-replicator' }

export class PatroniNode {
  readonly name: string
  readonly port: number
  readonly #folder: string
  readonly #data: string
  readonly #env: Record<string, string>
  readonly #configuration: string
  #patroni: ChildProcess | undefined

  static async start(name: string, folder: string, configuration: string, etcd: string): Promise<PatroniNode> {
    const node = new PatroniNode(name, folder, configuration, etcd, await freePort(), await freePort())
    node.start()
    return node
  }

  private constructor(
    name: string,
    folder: string,
    configuration: string,
    etcd: string,
    port: number,
    apiPort: number,
  ) {
    this.name = name
    this.port = port
    this.#folder = folder
    this.#data = join(folder, name)
    this.#configuration = configuration
    this.#env = {
      PATRONI_NAME: name,
      PATRONI_ETCD_HOSTS: etcd,
      PATRONI_RESTAPI_LISTEN: `127.0.0.1:${apiPort}`,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `127.0.0.1:${apiPort}`,
      PATRONI_POSTGRESQL_LISTEN: `127.0.0.1:${port}`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `127.0.0.1:${port}`,
      PATRONI_POSTGRESQL_DATA_DIR: this.#data,
      PATRONI_POSTGRESQL_BIN_DIR: PROGRAMS,
      PATRONI_POSTGRESQL_PGPASS: join(folder, `${name}.pgpass`),
      PATRONI_SUPERUSER_USERNAME: SUPERUSER.name,
      PATRONI_SUPERUSER_PASSWORD: SUPERUSER.password,
      PATRONI_REPLICATION_USERNAME: REPLICATION.name,
      PATRONI_REPLICATION_PASSWORD: REPLICATION.password,
    }
    makeFolder(folder)
    // PostgreSQL is not a child of Patroni, and continues to run when Patroni is killed.
    killAtExit(() => this.#postmaster())
  }

  start(): void {
    this.#patroni = start(PATRONI, [this.#configuration], {
      user: postgresUser(),
      env: this.#env,
      log: join(this.#folder, `${this.name}.log`),
    })
  }

  async killPatroni(): Promise<void> {
    await killHard(this.#patroni!)
  }

  signalPatroni(signal: NodeJS.Signals): void {
    signalTree(this.#patroni!.pid!, signal)
  }

  /** Sends a signal to every process of PostgreSQL. */
  signalPostgres(signal: NodeJS.Signals): void {
    const id = this.#postmaster()
    if (id === undefined) throw new Error(`PostgreSQL of ${this.name} is not running`)
    signalTree(id, signal)
  }

  /** Returns the id of PostgreSQL's first process. Checks its command line: a crash leaves the file behind, and ids are reused. */
  #postmaster(): number | undefined {
    try {
      const id = Number(readFileSync(join(this.#data, 'postmaster.pid'), 'utf8').split('\n', 1)[0])
      return readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(this.#data) ? id : undefined
    } catch {
      return undefined
    }
  }
}
