// Decides which environment a database belongs to: one rule for the service and for commands.
import { type Environment, ENVIRONMENTS } from '../contract/operations.ts'
import { CannotOpenStore, type Store } from './store.ts'

export interface EnvironmentSetting {
  environment: Environment
  /** False if it is the default. */
  isChosen: boolean
}

/**
 * Resolves with the environment of the database. A database without one gets the setting's, even if that is the default. A
 * recorded default gives way to a chosen setting while nothing depends on it; otherwise the recorded environment stays. Throws
 * `CannotOpenStore` for an environment of a newer program.
 */
export async function settleEnvironment(store: Store, setting: EnvironmentSetting): Promise<Environment> {
  const { environment, how } = await environmentToBe(store, setting)
  return how === undefined ? environment : store.recordEnvironment(environment, how)
}

/** Resolves with the environment that `settleEnvironment` would return, and how it would record it, if it would. */
export async function environmentToBe(
  store: Store,
  { environment, isChosen }: EnvironmentSetting,
): Promise<{ environment: Environment; how?: Parameters<Store['recordEnvironment']>[1] }> {
  const recorded = await store.environment()
  if (recorded === undefined) {
    // Earlier releases served a database and made keys without recording its environment. Those keys must stay valid.
    const [key] = await store.accounts.listKeys()
    const isDefault = key === undefined && !isChosen
    return { environment: key?.environment ?? environment, how: { isDefault } }
  }
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
