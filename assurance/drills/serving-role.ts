// The role of deploy/kubernetes that serves and owns no table.
import { readFileSync } from 'node:fs'
import { askPostgres } from '../../test/harness/databases/ask-postgres.ts'

const ROLES = new URL('../../deploy/kubernetes/postgres/roles.sql', import.meta.url)

/** Makes the role, under another name than that of the owner of tests, in an empty database; returns the address of the database for it. */
export async function makeServingRole(owner: string): Promise<string> {
  await askPostgres(owner, readFileSync(ROLES, 'utf8').replaceAll(/\bpetstore\b/g, 'server'))
  return owner.replace(/\/\/[^@]+@/, '//server:PASSWORD@')
}
