// For npm run test:workers: every service that a test starts has two workers.
import { globalSetup as startPostgres } from './run-setup.ts'

export { globalTeardown } from './run-setup.ts'

export async function globalSetup(): Promise<void> {
  process.env['TEST_PETSTORE_WORKERS'] = '2'
  await startPostgres()
}
