// A run of tests against services with workers: `npm run test:workers`.

/** The settings that each service of such a run starts with; nothing otherwise. */
export const WORKERS: { PETSTORE_WORKERS?: string } = process.env['TEST_PETSTORE_WORKERS']
  ? { PETSTORE_WORKERS: process.env['TEST_PETSTORE_WORKERS'] }
  : {}
