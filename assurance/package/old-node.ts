// Other versions of Node.js, from npm; and what a launcher on an old one starts.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import packageJson from '../../package.json' with { type: 'json' }

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The package that brings the pinned Node.js on this platform; npm installed it alone. */
export const NODE_PACKAGE = Object.keys(packageJson.optionalDependencies).find((name) =>
  existsSync(join(ROOT, 'node_modules', name)),
)!

/** Installs the newest Node.js of this major version into this folder and returns the folder of its program. */
export function installNode(major: number, folder: string): string {
  const words = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', `${NODE_PACKAGE}@${major}`]
  execFileSync('npm', words, { stdio: ['ignore', 'ignore', 'inherit'] })
  return join(folder, 'node_modules', NODE_PACKAGE, 'bin')
}

export interface ProcessLine {
  pid: number
  parent: number
  words: string
}

export function processes(): ProcessLine[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).trim().split('\n')
  return lines.map((line) => {
    const [pid, parent, ...words] = line.trim().split(/\s+/)
    return { pid: Number(pid), parent: Number(parent), words: words.join(' ') }
  })
}
