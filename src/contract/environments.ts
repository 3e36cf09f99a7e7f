// The environments of a deployment, and what one of them refuses that the other allows.

/** A deployment belongs to one environment. Both have the same paths, but separate data and keys. */
export const ENVIRONMENTS = ['production', 'staging'] as const
export type Environment = (typeof ENVIRONMENTS)[number]

/** Staging has test data only. Nothing else than this table, its band on pages and its own keys and data sets it apart. */
export const ALLOWED = {
  /** A request may ask to fail (http/operations/rehearse.ts). */
  rehearsal: { production: false, staging: true },
  /** `petstore seed` adds animals: nothing removes them, so they would stay among those of a real store. */
  madeUpAnimals: { production: false, staging: true },
  /** Anyone at the service's own machine may sign up, unless a setting says otherwise (http/reach.ts). */
  signUpAtHome: { production: false, staging: true },
  /** `serve` may keep its data in memory, which ends with the process (cli/commands/serve.ts). */
  databaseInMemory: { production: false, staging: true },
  /** The first start prints an API key on the terminal (cli/commands/serve.ts). */
  firstRunKey: { production: false, staging: true },
} satisfies Record<string, Record<Environment, boolean>>
