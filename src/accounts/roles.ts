// What the roles of accounts are called.
import { entryOf } from '../contract/text/entry-of.ts'
import type { Account, Role } from '../store/account-store.ts'

export const ROLE_WORDS: Record<Role, string> = {
  manager: 'Manager',
  member: 'Member',
  keyless: 'Member without keys',
}

export function roleWords({ role }: Pick<Account, 'role'>): string {
  return entryOf(ROLE_WORDS, role) ?? role
}
