// Finds the Debian programs that a drill needs, installs them if possible, or says in one line what to install.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Makes sure that these program files exist; `packages` are the Debian packages that contain them. */
export function requirePrograms(programs: readonly string[], packages: readonly string[]): void {
  if (programs.every((program) => existsSync(program))) return
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    process.stderr.write(`Installing ${packages.join(' and ')} …\n`)
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    spawnSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' })
    spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], { env, stdio: 'ignore' })
  }
  const missing = programs.filter((program) => !existsSync(program))
  if (missing.length > 0)
    throw new Error(`Missing: ${missing.join(', ')}. Install it: apt-get install ${packages.join(' ')}`)
}
