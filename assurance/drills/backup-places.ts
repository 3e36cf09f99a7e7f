// Where the drill of backups keeps its stores, on each engine: under systemd, and as in the compose file.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { askPostgres } from '../../test/harness/databases/ask-postgres.ts'
import { petstore, settings } from '../../test/harness/programs/instance.ts'
import { startPostgres } from '../../test/harness/databases/postgres-server.ts'
import { PROGRAMS } from './debian-postgres.ts'
import { makeServingRole } from './serving-role.ts'

const BIN = fileURLToPath(new URL('../../bin/petstore', import.meta.url))

export const deployFile = (name: string) => readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')

/** Where a store stands: its database, and how a command of the document is run there. */
export interface Place {
  database: string
  folder: string
  /** The folder that backups are in, below it. */
  backups: string
  instances: number
  /** Changes a command for this machine, in its paths and in how a program is reached. */
  adapt: (command: string) => string
  env: Record<string, string>
  /** Changes the database as a newer release does that is taken back later. */
  upgrade: (statement: string) => Promise<unknown>
}

export interface Engine {
  /** The command of the document that makes a backup. */
  backs: RegExp
  /** A text of the block of commands that restores one. */
  restores: string
  newPlace: (folder: string) => Promise<Place>
}

const PG_DUMP = /^ *(docker .* pg_dump .*)$/m

export const ENGINES: Record<string, Engine> = {
  'SQLite under systemd': {
    backs: /`(systemctl start petstore-backup)`/,
    restores: 'petstore restore',
    async newPlace(folder) {
      for (const name of ['petstore', 'petstore-backups', 'petstore-metrics'])
        mkdirSync(join(folder, name), { mode: 0o700 })
      const file = join(folder, 'petstore/petstore.db')
      const adapt = (command: string) =>
        command
          .replace('systemctl start petstore-backup', unitCommands())
          .replaceAll('runuser -u petstore -- ', '')
          .replaceAll('/usr/local/bin/petstore', BIN)
          .replaceAll(/\/var\/(?:lib|cache)(?=\/petstore)/g, folder)
      const upgrade = async (statement: string) => {
        using db = new DatabaseSync(file)
        db.exec(statement)
      }
      return {
        database: `sqlite:${file}`,
        folder,
        backups: join(folder, 'petstore-backups'),
        instances: 1,
        adapt,
        env: settings(`sqlite:${file}`),
        upgrade,
      }
    },
  },
  'PostgreSQL of the compose file': {
    backs: PG_DUMP,
    restores: 'pg_restore',
    newPlace: (folder) => newPostgresPlace(folder, async (owner) => owner),
  },
  'PostgreSQL served as a role that owns no table': {
    backs: PG_DUMP,
    restores: 'pg_restore',
    newPlace: (folder) => newPostgresPlace(folder, makeServingRole),
  },
}

async function newPostgresPlace(folder: string, roleFor: (owner: string) => Promise<string>): Promise<Place> {
  const { url } = await startPostgres('fsync=on', 'full_page_writes=on')
  await askPostgres(url, 'CREATE DATABASE petstore')
  const owner = url.replace(/postgres$/, 'petstore')
  const database = await roleFor(owner)
  petstore(owner, ['migrate'])
  const { hostname, port, password } = new URL(url)
  const adapt = (command: string) => command.replaceAll('docker compose -f deploy/compose.yaml exec -T db ', '')
  const env = {
    PATH: `${PROGRAMS}:${process.env['PATH']}`,
    PGHOST: hostname,
    PGPORT: port,
    PGPASSWORD: decodeURIComponent(password),
  }
  const upgrade = (statement: string) => askPostgres(owner, statement)
  return { database, folder, backups: folder, instances: 2, adapt, env, upgrade }
}

/** Returns the commands of the unit that makes a backup, for a shell. */
function unitCommands(): string {
  const unit = deployFile('petstore-backup.service').replaceAll(/(%|\$)\1/g, '$1')
  return Array.from(unit.matchAll(/^ExecStart=(.+)$/gm), ([, command]) => command).join('\n')
}
