// Processes of a drill: each writes to a log file, can be killed as a power cut would, and ends with the drill.
import { type ChildProcess, spawn, spawnSync, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'

export interface Runner {
  /** Who it runs as, where the drill itself is root. */
  user?: { uid: number; gid: number }
  env?: Record<string, string>
  log: string
}

const running = new Set<ChildProcess>()

export function start(command: string, parameters: readonly string[], { user, env, log }: Runner): ChildProcess {
  const output = openSync(log, 'a')
  const options: SpawnOptions = { ...user, env: { ...process.env, ...env }, cwd: '/', stdio: ['ignore', output, output] }
  const child = spawn(command, parameters, options)
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Runs to the end and gives what it printed. */
export function run(command: string, parameters: readonly string[], { user, env }: Omit<Runner, 'log'> = {}, input = ''): string {
  const { status, stdout, stderr, error } = spawnSync(command, parameters, { ...user, env: { ...process.env, ...env }, cwd: '/', input, encoding: 'utf8' })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${command} ${parameters.join(' ')} ended with ${status}: ${stderr}`)
  return stdout
}

/** The process and all it started, at once and without a chance to tidy up. */
export async function killHard(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  const children = readFileSync(`/proc/${child.pid!}/task/${child.pid!}/children`, 'utf8').split(' ').filter(Boolean)
  child.kill('SIGKILL')
  for (const id of children) kill(Number(id))
  await exited
}

/** What the drill started is gone when it is done, whichever way it ended. */
export async function killAll(): Promise<void> {
  await Promise.all([...running].map(killHard))
}

function kill(id: number): void {
  try {
    process.kill(id, 'SIGKILL')
  } catch {
    // Gone with its parent already.
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
