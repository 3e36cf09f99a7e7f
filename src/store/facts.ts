// Facts about the database itself, such as its environment, in the same way for every engine.
import type { Environment } from '../contract/operations.ts'
import type { Store } from './store.ts'

/** The named facts of an engine; a fact that is not stored is undefined. */
export interface Facts {
  get(name: string): Promise<string | undefined>
  /** Changes a fact to `value` if it is `present`. Resolves with the value afterwards. */
  change(name: string, present: string | undefined, value: string | undefined): Promise<string | undefined>
}

const ENVIRONMENT = 'environment'
/** The environment that was recorded by default. If it is absent or not the present one, the operator has chosen. */
const DEFAULT_ENVIRONMENT = 'default_environment'
const UNFINISHED_COPY = 'unfinished_copy'
const YES = 'yes'

export function factsOfStore(
  facts: Facts,
): Pick<
  Store,
  'environment' | 'isDefaultEnvironment' | 'recordEnvironment' | 'isUnfinishedCopy' | 'setUnfinishedCopy'
> {
  return {
    environment: () => facts.get(ENVIRONMENT) as Promise<Environment | undefined>,
    async isDefaultEnvironment() {
      const fallback = await facts.get(DEFAULT_ENVIRONMENT)
      return fallback !== undefined && fallback === (await facts.get(ENVIRONMENT))
    },
    async recordEnvironment(environment, { instead, isDefault = false } = {}) {
      // First, so that no other process takes the default for a choice.
      if (isDefault) await facts.change(DEFAULT_ENVIRONMENT, undefined, environment)
      const recorded = (await facts.change(ENVIRONMENT, instead, environment)) as Environment
      if (!isDefault && recorded === environment) await facts.change(DEFAULT_ENVIRONMENT, environment, undefined)
      return recorded
    },
    isUnfinishedCopy: async () => (await facts.get(UNFINISHED_COPY)) !== undefined,
    async setUnfinishedCopy(unfinished) {
      await facts.change(UNFINISHED_COPY, unfinished ? undefined : YES, unfinished ? YES : undefined)
    },
  }
}
