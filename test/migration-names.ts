// The names of all migrations, the same in both engines, as commands print them.
import { readMigrations } from '../src/store/migrations.ts'

const migrations = readMigrations(new URL('../src/store/sqlite/migrations/', import.meta.url))

export const MIGRATION_NAMES = migrations.map(({ name }) => name)
