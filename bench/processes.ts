// Child processes of a bench run: each is held on its core where that is asked for, and none outlives the run.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'

export type Core = 'server' | 'load' | 'any'

/** Core 0 serves, core 1 loads; without taskset or a second core the system places them. */
const PINNED = availableParallelism() > 1 && has('taskset')
const CORES: Record<Core, string | undefined> = { server: '0', load: '1', any: undefined }

export const UNPINNED = 'server and load where the system puts them'
export const PLACEMENT = PINNED ? 'server on core 0, load on core 1' : UNPINNED

export function has(command: string): boolean {
  return spawnSync('which', [command]).status === 0
}

const running = new Set<ChildProcess>()
const complaints = new WeakMap<ChildProcess, string>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

export interface Start {
  command: string
  parameters: readonly string[]
  core: Core
  env?: Record<string, string | undefined>
  folder?: string
}

export function start({ command, parameters, core, env, folder }: Start): ChildProcess {
  const place = PINNED ? CORES[core] : undefined
  const [program, words] =
    place === undefined ? [command, parameters] : ['taskset', ['-c', place, command, ...parameters]]
  const child = spawn(program, words, { cwd: folder, env: { ...process.env, ...env }, stdio: 'pipe' })
  running.add(child)
  child.once('exit', () => running.delete(child))
  // What it complains about is told only when it fails.
  child.stderr
    .setEncoding('utf8')
    .on('data', (text: string) => complaints.set(child, (complaints.get(child) ?? '') + text))
  return child
}

/** The first line of output that this makes something of. */
export async function firstLine<T>(child: ChildProcess, read: (line: string) => T | undefined): Promise<T> {
  for await (const line of createInterface(child.stdout!)) {
    const found = read(line)
    if (found !== undefined) {
      child.stdout!.resume()
      return found
    }
  }
  throw new Error(`${child.spawnargs.join(' ')} ended without the line that was waited for: ${complaints.get(child)}`)
}

/** Runs to the end and gives what it printed. */
export async function output(how: Start, input = ''): Promise<string> {
  const child = start(how)
  child.stdin!.end(input)
  let text = ''
  child.stdout!.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with ${code}: ${text}${complaints.get(child)}`)
  return text
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
