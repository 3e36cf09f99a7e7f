// The rights that the role of the service needs on its tables, and the statements that grant those that are missing.
import { MIGRATIONS_TABLE } from '../migrations.ts'
import { KINDS, LEFT_BEHIND } from '../records.ts'
import type { Database } from './connection.ts'

const ALL_RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] as const

/** The rights on the tables of which the service uses fewer. */
const FEWER_RIGHTS: Record<string, readonly string[]> = {
  [MIGRATIONS_TABLE]: ['SELECT'],
  ...Object.fromEntries(KINDS.filter(({ appendOnly }) => appendOnly).map(({ name }) => [name, ['SELECT', 'INSERT']])),
}

/** The tables whose ids the service draws from their sequences itself. Others need no right on theirs. */
const DRAWN_FROM = ['pets']

const TABLES = [...KINDS.map(({ name }) => name), ...Object.keys(LEFT_BEHIND)]

interface Lacking {
  /** Identifiers are quoted. */
  role: string
  schema: string
  owner: string
  mayUseSchema: boolean
  /** Of a table, or of a sequence, which needs USAGE. */
  name: string
  right: string
}

/** What a role lacks, and how to grant it. */
export interface MissingRights {
  found: string
  fix: string
  /** Whether the service works without, except for removing animals: earlier releases did not need that right. */
  isMinor?: true
}

/** Resolves with undefined if nothing is missing, or the database has no tables yet. */
export async function findMissingRights(sql: Database): Promise<MissingRights | undefined> {
  // `current_schema` passes over a schema that the role may not use. Then the one is meant that `search_path` names: those of other
  // stores may be beside it.
  const needed = await sql<Lacking[]>`
    SELECT quote_ident(current_user) AS role, quote_ident(n.nspname) AS schema, c.relname AS name, p.right,
      quote_ident(pg_get_userbyid(c.relowner)) AS owner, has_schema_privilege(n.oid, 'USAGE') AS "mayUseSchema"
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL unnest(CASE c.relkind WHEN 'S' THEN ARRAY['USAGE']
      ELSE string_to_array(${ALL_RIGHTS.join(',')}, ',') END) WITH ORDINALITY AS p("right", position)
    WHERE (c.relkind IN ('r', 'p') AND c.relname IN ${sql(TABLES)}
        OR c.relkind = 'S' AND EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class t ON t.oid = d.refobjid
          WHERE d.objid = c.oid AND t.relnamespace = n.oid AND t.relname IN ${sql(DRAWN_FROM)}))
      AND n.nspname = coalesce(current_schema(),
        (SELECT t.schemaname FROM pg_catalog.pg_tables t JOIN regexp_split_to_table(
            replace(current_setting('search_path'), '"$user"', quote_ident(current_user)), ', *')
          WITH ORDINALITY AS path(name, position) ON path.name = quote_ident(t.schemaname)
          WHERE t.tablename = ${MIGRATIONS_TABLE} ORDER BY path.position LIMIT 1))
      AND NOT (has_schema_privilege(n.oid, 'USAGE') AND CASE c.relkind WHEN 'S'
        THEN has_sequence_privilege(c.oid, p.right) ELSE has_table_privilege(c.oid, p.right) END)
    ORDER BY c.relname, p.position`
  const lacking = needed.filter(
    ({ name, right }) => right === 'USAGE' || (FEWER_RIGHTS[name] ?? ALL_RIGHTS).includes(right),
  )
  if (lacking.length === 0) return findHiddenRows(sql)
  const { role, schema, owner, mayUseSchema } = lacking[0]!
  const rightsOf = Map.groupBy(lacking, ({ name }) => name)
  const namesOf = Map.groupBy(rightsOf.keys(), (name) =>
    rightsOf
      .get(name)!
      .map(({ right }) => right)
      .join(', '),
  )
  const grants = Array.from(
    namesOf,
    ([rights, names]) =>
      `GRANT ${rights} ON ${rights === 'USAGE' ? 'SEQUENCE ' : ''}${names.map((name) => `${schema}.${name}`).join(', ')} TO ${role};`,
  )
  if (!mayUseSchema) grants.unshift(`GRANT USAGE ON SCHEMA ${schema} TO ${role};`)
  // Without it, the same happens at the next release that adds a table.
  grants.push(
    `ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} IN SCHEMA ${schema} GRANT ${ALL_RIGHTS.join(', ')} ON TABLES TO ${role};`,
  )
  const fix = `Run as ${owner}: ${grants.join(' ')}`
  if (lacking.every(({ name, right }) => name === 'pets' && right === 'DELETE'))
    return { found: `the role ${role} lacks the right to remove animals`, fix, isMinor: true }
  const found = `the role ${role} lacks rights on ${mayUseSchema ? [...rightsOf.keys()].join(', ') : `the schema ${schema}`}`
  return { found, fix }
}

/** Row-level security without a policy shows the role an empty table, and lets it add nothing, whatever was granted. */
async function findHiddenRows(sql: Database): Promise<MissingRights | undefined> {
  const tables = await sql<{ name: string; role: string; owner: string }[]>`
    SELECT c.oid::regclass::text AS name, quote_ident(current_user) AS role,
      quote_ident(pg_get_userbyid(c.relowner)) AS owner
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relname IN ${sql(TABLES)} AND row_security_active(c.oid)
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid AND p.polpermissive)
    ORDER BY c.relname`
  if (tables.length === 0) return undefined
  const { role, owner } = tables[0]!
  const statements = tables.map(({ name }) => `ALTER TABLE ${name} DISABLE ROW LEVEL SECURITY;`)
  return {
    found: `row-level security hides the rows of ${tables.map(({ name }) => name).join(', ')} from the role ${role}`,
    fix: `Add policies for ${role}, or run as ${owner}: ${statements.join(' ')}`,
  }
}

/** Resolves with undefined if the role may create tables, and change those that exist, as migrations do. */
export async function findMigrationObstacle(sql: Database): Promise<MissingRights | undefined> {
  const [row] = await sql<{ role: string; schema: string; mayCreate: boolean; owner: string | null }[]>`
    SELECT quote_ident(current_user) AS role, quote_ident(coalesce(current_schema(), 'public')) AS schema,
      coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayCreate",
      (SELECT quote_ident(tableowner) FROM pg_catalog.pg_tables
        WHERE schemaname = current_schema() AND tablename IN ${sql(TABLES)}
          AND NOT pg_has_role(tableowner, 'USAGE') LIMIT 1) AS owner`
  const { role, schema, mayCreate, owner } = row!
  if (owner !== null)
    return { found: `the role ${role} does not own its tables`, fix: `Migrate as ${owner}, which does:` }
  if (mayCreate) return undefined
  return {
    found: `the role ${role} may not create tables`,
    fix: `GRANT USAGE, CREATE ON SCHEMA ${schema} TO ${role}; or migrate as the owner of the database:`,
  }
}
