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
const UNFINISHED_COPY = 'unfinished_copy'
const YES = 'yes'

export function factsOfStore(
  facts: Facts,
): Pick<Store, 'environment' | 'recordEnvironment' | 'isUnfinishedCopy' | 'setUnfinishedCopy'> {
  return {
    environment: () => facts.get(ENVIRONMENT) as Promise<Environment | undefined>,
    recordEnvironment: (environment, instead) =>
      facts.change(ENVIRONMENT, instead, environment) as Promise<Environment | undefined>,
    isUnfinishedCopy: async () => (await facts.get(UNFINISHED_COPY)) !== undefined,
    async setUnfinishedCopy(unfinished) {
      await facts.change(UNFINISHED_COPY, unfinished ? undefined : YES, unfinished ? YES : undefined)
    },
  }
}
