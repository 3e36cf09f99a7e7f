// The environment that a database belongs to: recorded once, and from then on a condition for serving it.
import type { Config } from '../config.ts'
import { databasePlace } from '../database-address.ts'
import { CannotOpenStore, type Store } from './store.ts'

type EnvironmentSettings = Pick<Config, 'environment' | 'given' | 'database'>

/**
 * Records the environment of a database that has none, if it was just created or if the setting was given. A default does
 * not decide for a database that exists. Throws `CannotOpenStore` if the database belongs to the other environment.
 */
export async function requireEnvironment(
  store: Store,
  { environment, given, database }: EnvironmentSettings,
): Promise<void> {
  const decides = store.opened.created || given.has('environment')
  const recorded = (await store.environment()) ?? (decides ? await store.recordEnvironment(environment) : undefined)
  if (recorded === undefined || recorded === environment) return
  throw new CannotOpenStore(
    `${databasePlace(database)} belongs to ${recorded}, but the setting is ${environment}. Set PETSTORE_ENVIRONMENT=${recorded} to serve it, ` +
      `or name another database. The command "environment set" moves it to ${environment}, where its keys are refused.`,
  )
}
