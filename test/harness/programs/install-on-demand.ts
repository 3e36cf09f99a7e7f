// Tools that are too large for `npm ci`: installed in the folder that needs them, when they are first needed.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Installs the packages of a folder, unless they are there. */
export function installOnDemand(folder: string): void {
  if (existsSync(join(folder, 'node_modules'))) return
  const words = ['install', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts']
  execFileSync('npm', words, { cwd: folder, stdio: 'inherit' })
}
