// A cluster of an installed Citus on this machine: a coordinator and nodes.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { askPostgres } from '../../test/harness/databases/ask-postgres.ts'
import { addNode } from '../../test/harness/databases/engines.ts'
import { type PostgresServer, startPostgres } from '../../test/harness/databases/postgres-server.ts'

const SETTINGS: `${string}=${string}`[] = [
  'shared_preload_libraries=citus',
  'citus.max_adaptive_executor_pool_size=1',
  'citus.node_conninfo=sslmode=prefer',
  'wal_level=logical',
  // Citus has one for each database.
  'max_worker_processes=64',
]

/** Sets PG_BIN, which chooses the PostgreSQL that is started; throws if that has no Citus. */
export function requireCitus(): void {
  const ask = (config: string, option: string) => spawnSync(config, [option], { encoding: 'utf8' }).stdout?.trim() ?? ''
  const bin = process.env['PG_BIN'] || ask('pg_config', '--bindir')
  if (!existsSync(join(ask(join(bin, 'pg_config'), '--pkglibdir'), 'citus.so')))
    throw new Error(
      'There is no Citus: set PG_BIN to the programs of a PostgreSQL that has it, or put its pg_config first in PATH. ' +
        'https://docs.citusdata.com/en/stable/installation/multi_node.html installs one.',
    )
  process.env['PG_BIN'] = bin
  // PostgreSQL's updates of November 2026 ask for it.
  const known = spawnSync(join(bin, 'postgres'), ['--describe-config'], { encoding: 'utf8' }).stdout
  if (known.includes('output_plugin_libraries')) SETTINGS.push('output_plugin_libraries=pgoutput,citus')
}

export function startNode(): Promise<PostgresServer> {
  return startPostgres(...SETTINGS)
}

/** Adds a node to the cluster of this database while it is used, and moves shards to it; resolves with how many it got. */
export async function grow(database: string, node: PostgresServer): Promise<number> {
  const name = new URL(database).pathname
  await askPostgres(node.url, `CREATE DATABASE ${name.slice(1)}`)
  await askPostgres(node.url.replace(/\/postgres$/, name), 'CREATE EXTENSION citus')
  await addNode(database, node.url)
  await askPostgres(database, `SELECT rebalance_table_shards('pets')`)
  const { port } = new URL(node.url)
  const [row] = await askPostgres(database, `SELECT count(*)::int FROM citus_shards WHERE nodeport = ${port}`)
  return row!['count'] as number
}

/** Resolves with how many transactions the nodes have prepared, and not committed yet. */
export async function countPrepared(database: string): Promise<number> {
  const [row] = await askPostgres(
    database,
    `SELECT sum(result::int)::int AS count FROM run_command_on_workers('SELECT count(*) FROM pg_prepared_xacts')`,
  )
  return row!['count'] as number
}
