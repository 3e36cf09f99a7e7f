// Compares a database with the migrations that made it, for `petstore doctor`: what was lost since, or is switched off.
import type { Fault } from '../database/check.ts'
import type { Migration } from '../database/migrations.ts'
import type { Database } from './pool/connection.ts'

/** Reads what these migrations make, in the form that their files have: the statement or advice that brings each object back. */
export function expectedObjects(migrations: readonly Pick<Migration, 'sql'>[]): Map<string, string> {
  const objects = new Map<string, string>()
  const addColumn = (name: string, type: string) =>
    objects.set(
      `column ${name} ${type.toLowerCase()}`,
      'If it was renamed or has another type, change it back; else restore a backup.',
    )
  for (const { sql } of migrations) {
    const statements = sql.replaceAll(/^--.*\n/gm, '')
    for (const [, table = '', body = ''] of statements.matchAll(/^CREATE TABLE (\w+) \(\n(.*?)^\);/gms))
      for (const [line, column, type, all] of body.matchAll(/^ {2}(?:([a-z_]+) (\w+)|PRIMARY KEY \((.+)\)).*/gm)) {
        if (column !== undefined) addColumn(`${table}.${column}`, type!)
        const [kind] = /PRIMARY KEY|UNIQUE/.exec(line) ?? []
        const key = `(${all ?? column})`
        if (kind !== undefined) objects.set(`unique ${table} ${key}`, `ALTER TABLE ${table} ADD ${kind} ${key};`)
        const [reference] = /REFERENCES \w+ \(\w+\) ON DELETE CASCADE/.exec(line) ?? []
        if (reference !== undefined)
          objects.set(`foreign key ${table} ${key}`, `ALTER TABLE ${table} ADD FOREIGN KEY ${key} ${reference};`)
      }
    for (const [, table, column, type] of statements.matchAll(/^ALTER TABLE (\w+) ADD COLUMN (\w+) (\w+)/gm))
      addColumn(`${table}.${column}`, type!)
    for (const [statement, name] of statements.matchAll(/^CREATE INDEX (?:CONCURRENTLY )?(\w+) ON [^;]+;/gm))
      objects.set(`index ${name}`, statement.replaceAll(/\s+/g, ' ').replace(/INDEX (?!CONC)/, 'INDEX CONCURRENTLY '))
    for (const [, name] of statements.matchAll(/^DROP INDEX (\w+);/gm)) objects.delete(`index ${name}`)
    for (const [statement, name] of statements.matchAll(/^CREATE (?:OR REPLACE )?FUNCTION (\w+)\(.*?^\$\$;/gms))
      objects.set(`function ${name}`, statement)
    for (const [statement, name] of statements.matchAll(/^CREATE TRIGGER (\w+) [^;]+;/gm))
      objects.set(`trigger ${name}`, statement)
  }
  return objects
}

/** The objects that exist, with what is wrong with each. */
const FOUND = `
  WITH here AS (SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema()),
    indexes AS (SELECT c.relname AS name, t.relname AS on_table, t.oid AS table_oid, i.* FROM here c
      JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_class t ON t.oid = i.indrelid)
  SELECT format('column %s.%s %s', c.relname, attname, format_type(atttypid, atttypmod)) AS object, NULL AS fault, NULL AS fix
    FROM here c JOIN pg_attribute ON attrelid = c.oid WHERE attnum > 0 AND NOT attisdropped
  UNION ALL SELECT format('unique %s (%s)', on_table, (SELECT string_agg(attname, ', ' ORDER BY nth)
      FROM unnest(indkey) WITH ORDINALITY AS k(num, nth) JOIN pg_attribute ON attrelid = table_oid AND attnum = num)), NULL, NULL
    FROM indexes WHERE indisunique AND indpred IS NULL AND indexprs IS NULL
  UNION ALL SELECT 'index ' || name, CASE WHEN NOT indisvalid THEN 'is invalid, so it is written but not used, or it is still being built' END,
      format('REINDEX INDEX CONCURRENTLY %I;', name) FROM indexes
  UNION ALL SELECT format('foreign key %s (%s)', c.relname, attname), NULL, NULL FROM here c
    JOIN pg_constraint ON conrelid = c.oid AND confdeltype = 'c' JOIN pg_attribute ON attrelid = c.oid AND attnum = ANY(conkey)
  UNION ALL SELECT 'function ' || proname, NULL, NULL FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = current_schema()
  UNION ALL SELECT 'table ' || relname, 'has row security, which hides its rows', format('ALTER TABLE %I DISABLE ROW LEVEL SECURITY;', relname)
    FROM here WHERE relkind = 'r' AND row_security_active(oid)
  UNION ALL SELECT 'trigger ' || tgname, CASE WHEN tgenabled IN ('D', 'R') THEN 'is disabled' END,
      format('ALTER TABLE %I ENABLE TRIGGER %I;', c.relname, tgname)
    FROM here c JOIN pg_trigger ON tgrelid = c.oid WHERE NOT tgisinternal
  UNION SELECT 'check of foreign keys of ' || tgrelid::regclass, 'is disabled', format('ALTER TABLE %s ENABLE TRIGGER ALL;', tgrelid::regclass)
    FROM here c JOIN pg_trigger ON tgrelid = c.oid WHERE tgisinternal AND tgenabled IN ('D', 'R')`

/** The animals have no triggers once they are distributed. Without an index the service is only slow. */
export async function findSchemaFaults(
  sql: Database,
  migrations: readonly Migration[],
  isDistributed: boolean,
): Promise<Fault[]> {
  const found = await sql.unsafe<{ object: string; fault: string | null; fix: string }[]>(FOUND)
  const names = new Set(found.map(({ object }) => object))
  const missing = [...expectedObjects(migrations)].filter(
    ([object, fix]) => !names.has(object) && !(isDistributed && fix.includes(' ON pets FOR ')),
  )
  return [
    ...missing.map(([object, fix]) => ({ object, fault: 'is missing', fix })),
    ...found.filter(({ fault }) => fault !== null),
  ].map(({ object, fault, fix }) => ({ found: `${object} ${fault}`, fix, isMinor: object.startsWith('index ') }))
}
