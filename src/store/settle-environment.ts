// Decides which environment a database belongs to: one rule for the service and for commands.
import type { Environment } from '../contract/operations.ts'
import type { Store } from './store.ts'

export interface EnvironmentSetting {
  environment: Environment
  /** False if it is the default. */
  isChosen: boolean
}

/**
 * Resolves with the environment of the database. A database without one gets the setting's, even if that is the default. A
 * recorded default gives way to a chosen setting while nothing depends on it; otherwise the recorded environment stays.
 */
export async function settleEnvironment(
  store: Store,
  { environment, isChosen }: EnvironmentSetting,
): Promise<Environment> {
  const recorded = await store.environment()
  if (recorded === undefined) {
    // Earlier releases served a database and made keys without recording its environment. Those keys must stay valid.
    const [key] = await store.accounts.listKeys()
    const isDefault = key === undefined && !isChosen
    return store.recordEnvironment(key?.environment ?? environment, { isDefault })
  }
  const decides = isChosen && (await (recorded === environment ? store.isDefaultEnvironment() : givesWay(store)))
  return decides ? store.recordEnvironment(environment, { instead: recorded }) : recorded
}

/** Whether the environment was recorded by default, and nothing depends on it yet. */
export async function givesWay(store: Store): Promise<boolean> {
  if (!(await store.isDefaultEnvironment())) return false
  const [keys, pets] = await Promise.all([store.accounts.listKeys(), store.pets.list({ limit: 1 })])
  return keys.length === 0 && pets.length === 0
}
