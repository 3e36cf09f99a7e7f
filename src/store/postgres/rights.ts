// The rights that the role of the service needs on its tables, and the statements that grant those that are missing.
import type { Fault } from '../database/check.ts'
import { MIGRATIONS_TABLE } from '../database/migrations.ts'
import { KINDS, LEFT_BEHIND, toJson } from '../records.ts'
import type { Database } from './pool/connection.ts'

const ALL_RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE']

/** Of all other tables the service needs all rights. It draws the ids of animals from their sequence itself. */
const OTHER_RIGHTS: Record<string, readonly string[]> = {
  [MIGRATIONS_TABLE]: ['SELECT'],
  audit_events: ['SELECT', 'INSERT'],
  pets_id_seq: ['USAGE'],
}

const NEEDED = [...KINDS.map(({ name }) => name), ...Object.keys(LEFT_BEHIND), 'pets_id_seq'].map((name) => ({
  name,
  rights: OTHER_RIGHTS[name] ?? ALL_RIGHTS,
}))

interface Lacking {
  /** Identifiers are quoted. */
  role: string
  schema: string
  owner: string
  mayUseSchema: boolean
  /** Of a table or sequence. */
  name: string
  rights: string
}

/** Resolves with undefined if nothing is missing, or the database has no tables yet. */
export async function findMissingRights(sql: Database): Promise<Fault | undefined> {
  // `current_schema` passes over a schema that the role may not use.
  const lacking = await sql<Lacking[]>`
    SELECT quote_ident(current_user) AS role, quote_ident(n.nspname) AS schema, c.relname AS name,
      quote_ident(pg_get_userbyid(c.relowner)) AS owner, has_schema_privilege(n.oid, 'USAGE') AS "mayUseSchema",
      string_agg(p.right, ', ' ORDER BY p.position) AS rights
    FROM json_to_recordset(${toJson(NEEDED)}::text::json) AS needed (name TEXT, rights TEXT[])
    CROSS JOIN LATERAL unnest(needed.rights) WITH ORDINALITY AS p("right", position)
    JOIN pg_catalog.pg_class c ON c.relname = needed.name
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = coalesce(current_schema(), 'public')
    WHERE NOT (has_schema_privilege(n.oid, 'USAGE') AND CASE c.relkind WHEN 'S'
      THEN has_sequence_privilege(c.oid, p.right) ELSE has_table_privilege(c.oid, p.right) END)
    GROUP BY c.oid, c.relname, c.relowner, n.oid, n.nspname ORDER BY c.relname`
  if (lacking.length === 0) return undefined
  const { role, schema, owner, mayUseSchema } = lacking[0]!
  const grants = Array.from(
    Map.groupBy(lacking, ({ rights }) => rights),
    ([rights, on]) =>
      `GRANT ${rights} ON ${rights === 'USAGE' ? 'SEQUENCE ' : ''}${on.map(({ name }) => `${schema}.${name}`).join(', ')} TO ${role};`,
  )
  if (!mayUseSchema) grants.unshift(`GRANT USAGE ON SCHEMA ${schema} TO ${role};`)
  // Without it, the same happens at the next release that adds a table.
  grants.push(
    `ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} IN SCHEMA ${schema} GRANT ${ALL_RIGHTS.join(', ')} ON TABLES TO ${role};`,
  )
  const fix = `Run as ${owner}: ${grants.join(' ')}`
  const on = mayUseSchema ? lacking.map(({ name }) => name).join(', ') : `the schema ${schema}`
  return { found: `the role ${role} lacks rights on ${on}`, fix }
}

/** Resolves with undefined if the role may create tables, and change those that exist, as migrations do. If `isNew`, none may exist. */
export async function findMigrationObstacle(sql: Database, isNew = false): Promise<Fault | undefined> {
  const [row] = await sql<{ role: string; schema: string; mayCreate: boolean; table: string; owner: string | null }[]>`
    SELECT quote_ident(current_user) AS role, quote_ident(coalesce(current_schema(), 'public')) AS schema,
      coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayCreate",
      tablename AS table, quote_ident(tableowner) AS owner
    FROM (SELECT) AS one LEFT JOIN pg_catalog.pg_tables ON schemaname = current_schema()
      AND tablename IN ${sql(NEEDED.map(({ name }) => name))} AND (${isNew} OR NOT pg_has_role(tableowner, 'USAGE')) LIMIT 1`
  const { role, schema, mayCreate, table, owner } = row!
  if (isNew && owner !== null)
    return { found: `the table ${table} is another program's`, fix: 'Create a database for the service alone.' }
  if (owner !== null)
    return { found: `the role ${role} does not own its tables`, fix: `Migrate as ${owner}, which does.` }
  if (mayCreate) return undefined
  return {
    found: `the role ${role} may not create tables`,
    fix: `GRANT USAGE, CREATE ON SCHEMA ${schema} TO ${role}; or migrate as the owner of the database.`,
  }
}
