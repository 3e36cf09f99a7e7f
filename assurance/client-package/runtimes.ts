// The runtimes that the client promises to run on, as npm installs them for this machine.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

export const FOLDER = import.meta.dirname
const MODULES = join(FOLDER, 'node_modules')

/** Installs the tools and runtimes of package.json on the first run: some 350 MB, most of it runtimes. */
export function install(): void {
  if (existsSync(join(MODULES, 'publint'))) return
  execFileSync('npm', ['install', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts'], {
    cwd: FOLDER,
    stdio: 'inherit',
  })
}

export const tool = (name: string) => join(MODULES, '.bin', name)

/** Of the packages for each platform, npm installs the one for this machine. */
const installed = (scope: string, file: string) => join(MODULES, scope, readdirSync(join(MODULES, scope))[0]!, file)

/** By name: the words that run a script. */
export const RUNTIMES: Record<string, () => string[]> = {
  'Node 20': () => [tool('node')],
  'Node 26': () => [process.execPath],
  Bun: () => [installed('@oven', 'bin/bun')],
  Deno: () => [installed('@deno', 'deno'), 'run', '--allow-net'],
}
