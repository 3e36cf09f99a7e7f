// Processes of a drill: each writes to a log file, can be killed as a power cut would, and ends with the drill.
import { type ChildProcess, spawn, spawnSync, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readdirSync, readFileSync } from 'node:fs'

export interface Runner {
  /** Who it runs as, where the drill itself is root. */
  user?: { uid: number; gid: number } | undefined
  env?: Record<string, string>
  log: string
}

const running = new Set<ChildProcess>()
const orphans: (() => number | undefined)[] = []

export function start(command: string, parameters: readonly string[], { user, env, log }: Runner): ChildProcess {
  const output = openSync(log, 'a')
  const options: SpawnOptions = {
    ...user,
    env: { ...process.env, ...env },
    cwd: '/',
    stdio: ['ignore', output, output],
  }
  const child = spawn(command, parameters, options)
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Runs to the end and gives what it printed. */
export function run(
  command: string,
  parameters: readonly string[],
  { user, env }: Omit<Runner, 'log'> = {},
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

/** Ends, together with the drill, a process that another one has started and that outlives it: `find` returns its id. */
export function endWithDrill(find: () => number | undefined): void {
  orphans.push(find)
}

/** The process and all it started, at once and without a chance to tidy up. */
export async function killHard(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  signalTree(child.pid!, 'SIGKILL')
  await exited
}

/** What the drill started is gone when it is done, whichever way it ended. */
export async function killAll(): Promise<void> {
  await Promise.all([...running].map(killHard))
  for (const id of orphans.map((find) => find())) if (id !== undefined) signalTree(id, 'SIGKILL')
}

/** Sends a signal to a process and to all it started. Each is stopped first, so that it starts no more meanwhile. */
export function signalTree(id: number, signal: NodeJS.Signals): void {
  unlessGone(() => process.kill(id, 'SIGSTOP'))
  for (const child of childrenOf(id)) signalTree(child, signal)
  unlessGone(() => process.kill(id, signal))
}

/** Each thread has its own list. */
export function childrenOf(id: number): number[] {
  const threads = unlessGone(() => readdirSync(`/proc/${id}/task`)) ?? []
  const lists = threads.map(
    (thread) => unlessGone(() => readFileSync(`/proc/${id}/task/${thread}/children`, 'utf8')) ?? '',
  )
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number))
}

/** Returns undefined if the process, or the thread, has ended. */
function unlessGone<T>(ask: () => T): T | undefined {
  try {
    return ask()
  } catch {
    return undefined
  }
}

/** Asks again until it is so; a rejection counts as not yet. */
export async function until(what: string, isSo: () => Promise<boolean>, withinMs = 30_000): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs / 1000} s in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
