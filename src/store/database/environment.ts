// Which environment a database belongs to: one rule for the service and for commands. It is recorded as a fact of the database, in
// the same way for every engine.
import { type Environment, ENVIRONMENTS } from '../../contract/environments.ts'
import type { Sql, Statement } from '../sql.ts'
import { CannotOpenStore, type Store } from '../store.ts'

export interface EnvironmentSetting {
  environment: Environment
  /** Whether the operator has set it; otherwise it is the default. */
  isChosen: boolean
}

/**
 * Resolves with the environment of the database. A database without one gets the setting's, even if that is the default. A
 * recorded default gives way to a chosen setting while nothing depends on it; otherwise the recorded environment stays. Throws
 * `CannotOpenStore` for an environment of a newer program.
 */
export async function ensureEnvironment(store: Store, setting: EnvironmentSetting): Promise<Environment> {
  const { environment, how } = await decideEnvironment(store, setting)
  return how === undefined ? environment : store.recordEnvironment(environment, how)
}

/** Resolves with what `ensureEnvironment` resolves with, and the options to record it with; undefined if it is recorded already. */
export async function decideEnvironment(
  store: Store,
  { environment, isChosen }: EnvironmentSetting,
): Promise<{ environment: Environment; how?: Parameters<Store['recordEnvironment']>[1] }> {
  const recorded = await store.environment()
  if (recorded === undefined) return { environment, how: { isDefault: !isChosen } }
  if (!ENVIRONMENTS.includes(recorded))
    throw new CannotOpenStore(
      `The database belongs to the environment ${recorded}, which this program does not know. Run the newer program that recorded it; nothing was changed.`,
    )
  const decides = isChosen && (await (recorded === environment ? store.isDefaultEnvironment() : givesWay(store)))
  return decides ? { environment, how: { instead: recorded } } : { environment: recorded }
}

/** Whether the environment was recorded by default, and nothing depends on it yet. */
export async function givesWay(store: Store): Promise<boolean> {
  if (!(await store.isDefaultEnvironment())) return false
  const [keys, pets] = await Promise.all([store.accounts.listKeys(), store.pets.list({ limit: 1 })])
  return keys.length === 0 && pets.length === 0
}

const ENVIRONMENT = 'environment'
/** The environment that was recorded by default. The operator has chosen if this is absent or differs from the recorded one. */
const DEFAULT_ENVIRONMENT = 'default_environment'
const UNFINISHED_COPY = 'unfinished_copy'
const YES = 'yes'

/** The named facts of a database; a fact that is not stored is undefined. */
export function factsOfStore(sql: Sql) {
  async function get(name: string): Promise<string | undefined> {
    const [row] = await sql.read<{ value: string }>('SELECT value FROM store_facts WHERE name = $1', name)
    return row?.value
  }

  /** Changes a fact to `value` if it is `present`. Resolves with the value afterwards. */
  async function change(name: string, present: string | undefined, value: string | undefined) {
    const changes: Statement =
      value === undefined
        ? ['DELETE FROM store_facts WHERE name = $1 AND value = $2', name, present ?? null]
        : present === undefined
          ? ['INSERT INTO store_facts (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING', name, value]
          : ['UPDATE store_facts SET value = $1 WHERE name = $2 AND value = $3', value, name, present]
    await sql.run(changes, { isRepeatable: true })
    return get(name)
  }

  return {
    environment: () => get(ENVIRONMENT) as Promise<Environment | undefined>,
    async isDefaultEnvironment() {
      const fallback = await get(DEFAULT_ENVIRONMENT)
      return fallback !== undefined && fallback === (await get(ENVIRONMENT))
    },
    async recordEnvironment(environment, { instead, isDefault = false } = {}) {
      // First, so that no other process takes the default for a choice.
      if (isDefault) await change(DEFAULT_ENVIRONMENT, undefined, environment)
      const recorded = (await change(ENVIRONMENT, instead, environment)) as Environment
      if (!isDefault && recorded === environment) await change(DEFAULT_ENVIRONMENT, environment, undefined)
      return recorded
    },
    isUnfinishedCopy: async () => (await get(UNFINISHED_COPY)) !== undefined,
    async setUnfinishedCopy(unfinished) {
      await change(UNFINISHED_COPY, unfinished ? undefined : YES, unfinished ? YES : undefined)
    },
  } satisfies Partial<Store>
}
