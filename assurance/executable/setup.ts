// For npm run test:executable: builds the executable of this platform; every service that a test can start from it is that file.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import packageJson from '../../package.json' with { type: 'json' }
import { globalSetup as startPostgres } from '../../test/run/run-setup.ts'

export { globalTeardown } from '../../test/run/run-setup.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export async function globalSetup(): Promise<void> {
  const platform = `${process.platform}-${process.arch}`
  execFileSync('npm', ['run', 'build:executables', '--', platform], { cwd: ROOT, stdio: 'inherit' })
  process.env['TEST_PETSTORE_EXECUTABLE'] = `${ROOT}executables/petstore-${packageJson.version}-${platform}`
  await startPostgres()
}
