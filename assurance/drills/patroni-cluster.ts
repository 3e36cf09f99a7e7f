// Three PostgreSQL servers managed by Patroni: a leader, a synchronous standby and another standby. Patroni keeps its state in etcd.
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { askPostgres } from '../../test/harness/databases/ask-postgres.ts'
import { freePort } from '../../test/harness/connections/free-port.ts'
import { start } from '../../test/harness/programs/processes.ts'
import { until } from '../../test/harness/until.ts'
import { makeFolder, postgresUser } from './debian-postgres.ts'
import { PatroniNode, SUPERUSER } from './patroni-node.ts'

export const ETCD = '/usr/bin/etcd'
export const PATRONICTL = '/usr/bin/patronictl'

const SHIPPED = new URL('../../deploy/patroni.yaml', import.meta.url)
const SCOPE = 'petstore'
const ROLE = { name: 'petstore', password: 'drill-petstore' }
/** Generous, because a former leader may have to be rewound or copied again. */
const SETTLE_WITHIN_MS = 120_000

/** The state of a node, as its Patroni writes it to etcd. */
interface Member {
  state: string
  timeline: number
}

export class PatroniCluster {
  readonly #folder: string
  readonly #etcd: string
  readonly #configuration: string
  #nodes: PatroniNode[] = []

  static async start(folder: string): Promise<PatroniCluster> {
    makeFolder(folder)
    const cluster = new PatroniCluster(folder, await startEtcd(folder))
    for (const name of ['a', 'b', 'c'])
      cluster.#nodes.push(await PatroniNode.start(name, folder, cluster.#configuration, cluster.#etcd))
    await cluster.settled()
    const leader = `postgres://${SUPERUSER.name}:${SUPERUSER.password}@127.0.0.1:${(await cluster.leader()).port}/postgres`
    await askPostgres(leader, `CREATE ROLE ${ROLE.name} LOGIN PASSWORD '${ROLE.password}'`)
    await askPostgres(leader, `CREATE DATABASE ${ROLE.name} OWNER ${ROLE.name}`)
    return cluster
  }

  private constructor(folder: string, etcd: string) {
    this.#folder = folder
    this.#etcd = etcd
    this.#configuration = join(folder, 'patroni.yaml')
    writeFileSync(this.#configuration, configuration(folder))
  }

  /** An address with all hosts: the service finds out which of them accepts writes. */
  get url(): string {
    const hosts = this.#nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')
    return `postgres://${ROLE.name}:${ROLE.password}@${hosts}/${ROLE.name}?target_session_attrs=read-write`
  }

  async leader(): Promise<PatroniNode> {
    return this.#node(await this.#valueInEtcd('leader'))
  }

  async synchronousStandby(): Promise<PatroniNode> {
    const sync = await this.#valueInEtcd('sync')
    return this.#node(sync && (JSON.parse(sync) as { sync_standby?: string }).sync_standby)
  }

  /** Resolves when one node leads and the others follow it, one of them synchronously. */
  async settled(): Promise<void> {
    await until(() => this.#isSettled(), 'one node leads and the others follow', SETTLE_WITHIN_MS)
  }

  /** Makes the synchronous standby the leader, with patronictl, as an operator would. */
  async switchOver(): Promise<void> {
    const [leader, candidate] = [await this.leader(), await this.synchronousStandby()]
    const parameters = [
      '--config-file',
      this.#configuration,
      'switchover',
      SCOPE,
      '--leader',
      leader.name,
      '--candidate',
      candidate.name,
      '--force',
    ]
    const log = join(this.#folder, 'patronictl.log')
    const [status] = await once(
      start(PATRONICTL, parameters, { user: postgresUser(), env: { PATRONI_ETCD_HOSTS: this.#etcd }, log }),
      'exit',
    )
    if (status !== 0) throw new Error(`patronictl ended with ${status}; see ${log}`)
  }

  async #isSettled(): Promise<boolean> {
    const leader = await this.leader()
    const standby = await this.synchronousStandby()
    const members = await Promise.all(
      this.#nodes.map(
        async ({ name }) => JSON.parse((await this.#valueInEtcd(`members/${name}`)) ?? '{}') as Partial<Member>,
      ),
    )
    const timelines = new Set(members.map(({ timeline }) => timeline))
    return leader !== standby && members.every(({ state }) => state === 'running') && timelines.size === 1
  }

  #node(name: string | undefined): PatroniNode {
    const node = this.#nodes.find((candidate) => candidate.name === name)
    if (node === undefined) throw new Error(`no such node: ${name}`)
    return node
  }

  /** Returns the value that Patroni has written to etcd under this name. */
  async #valueInEtcd(name: string): Promise<string | undefined> {
    const response = await fetch(`http://${this.#etcd}/v2/keys/service/${SCOPE}/${name}`)
    return ((await response.json()) as { node?: { value: string } }).node?.value
  }
}

/** Returns deploy/patroni.yaml, adapted: without a watchdog, and with sockets in the drill's folder. */
function configuration(folder: string): string {
  const shipped = readFileSync(SHIPPED, 'utf8')
  const adapted = shipped.replace('mode: required', 'mode: off').replace('/var/run/postgresql', folder)
  if (!adapted.includes('mode: off') || !adapted.includes(folder))
    throw new Error('deploy/patroni.yaml is not as the drill expects it')
  return adapted
}

async function startEtcd(folder: string): Promise<string> {
  const [client, peer] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  const addresses = [
    '--listen-client-urls',
    `http://${client}`,
    '--advertise-client-urls',
    `http://${client}`,
    '--listen-peer-urls',
    `http://${peer}`,
  ]
  const cluster = ['--initial-advertise-peer-urls', `http://${peer}`, '--initial-cluster', `default=http://${peer}`]
  start(ETCD, ['--enable-v2', '--data-dir', join(folder, 'etcd'), ...addresses, ...cluster], {
    user: postgresUser(),
    log: join(folder, 'etcd.log'),
  })
  await until(async () => (await fetch(`http://${client}/health`)).ok, 'etcd is healthy')
  return client
}
