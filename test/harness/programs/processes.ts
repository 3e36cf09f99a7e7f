// Child processes of tests, drills and benches: none outlives the process that started it.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { signalTree } from './process-tree.ts'

export interface StartOptions {
  /** The user that the child runs as; only root can set it. */
  user?: { uid: number; gid: number } | undefined
  env?: Record<string, string | undefined>
  /** The file that the child's output is appended to. Default: pipes, read from the ChildProcess. */
  log?: string
}

const running = new Set<ChildProcess>()
const orphans: (() => number | undefined)[] = []

process.once('exit', () => {
  for (const { pid } of running) signalTree(pid!, 'SIGKILL')
  killOrphans()
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** The environment of a program of this machine, such as a proxy or a browser: whatever it keeps, it keeps in this folder. */
export function keptIn(folder: string): Record<string, string | undefined> {
  const elsewhere = Object.keys(process.env).filter((name) => name.startsWith('XDG_') || name === 'KUBECONFIG')
  return {
    ...process.env,
    ...Object.fromEntries(elsewhere.map((name) => [name, undefined])),
    HOME: folder,
    TMPDIR: folder,
  }
}

export function start(
  command: string,
  parameters: readonly string[],
  { user, env, log }: StartOptions = {},
): ChildProcess {
  const output = log === undefined ? 'pipe' : openSync(log, 'a')
  const child = spawn(command, parameters, {
    ...user,
    env: { ...process.env, ...env },
    cwd: '/',
    stdio: ['ignore', output, output],
  })
  if (typeof output === 'number') closeSync(output)
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Runs a command to its end and returns what it printed. */
export function run(
  command: string,
  parameters: readonly string[],
  { user, env }: Omit<StartOptions, 'log'> = {},
  input = '',
): string {
  const { status, stdout, stderr, error } = spawnSync(command, parameters, {
    ...user,
    env: { ...process.env, ...env },
    cwd: '/',
    input,
    encoding: 'utf8',
  })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${command} ${parameters.join(' ')} ended with ${status}: ${stderr}`)
  return stdout
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** Collects a child's output until it ends. */
export async function collect(child: ChildProcess): Promise<Ended> {
  const ended = { code: null, signal: null, stdout: '', stderr: '' } as Ended
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (ended.stdout += text))
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (ended.stderr += text))
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { ...ended, code, signal }
}

/** Returns the first result of `read` that is not undefined. `read` is called with every line of output, also later ones. */
export function firstLine<T>(child: ChildProcess, read: (line: string) => T | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    let rest = ''
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const found of lines.map(read)) if (found !== undefined) resolve(found)
    })
    void collect(child).then(({ stderr }) => reject(new Error(`${child.spawnargs.join(' ')} ended: ${stderr}`)))
  })
}

/** Registers a descendant that may outlive its parent, to be killed by `killAll` and at exit; `find` returns its id. */
export function killAtExit(find: () => number | undefined): void {
  orphans.push(find)
}

export async function stop(child: ChildProcess): Promise<void> {
  await end(child, () => child.kill('SIGTERM'))
}

/** Kills a process and its descendants with SIGKILL, so that they cannot clean up. */
export async function killHard(child: ChildProcess): Promise<void> {
  await end(child, () => signalTree(child.pid!, 'SIGKILL'))
}

async function end(child: ChildProcess, signal: () => void): Promise<void> {
  if (hasEnded(child)) return
  const exited = once(child, 'exit')
  signal()
  await exited
}

export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** Kills all processes that were started; resolves when they have ended. */
export async function killAll(): Promise<void> {
  await Promise.all([...running].map(killHard))
  killOrphans()
}

function killOrphans(): void {
  for (const pid of orphans.map((find) => find())) if (pid !== undefined) signalTree(pid, 'SIGKILL')
}
