// Starts the processes of a bench, each pinned to its core if possible.
import { type ChildProcess, spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { collect, start, type StartOptions } from '../../test/harness/programs/processes.ts'

const CORES = { server: '0', load: '1' }

/** Core 0 runs the server, core 1 the load. Without taskset or a second core the system places them, and several processes of a server. */
const PINNED = availableParallelism() > 1 && has('taskset') && !process.argv.includes('--workers')

export const PLACEMENT = PINNED ? 'server on core 0, load on core 1' : 'server and load where the system puts them'

export function has(command: string): boolean {
  return spawnSync('which', [command]).status === 0
}

export function startOn(
  core: keyof typeof CORES,
  command: string,
  parameters: readonly string[],
  options?: StartOptions,
): ChildProcess {
  return PINNED
    ? start('taskset', ['-c', CORES[core], command, ...parameters], options)
    : start(command, parameters, options)
}

/** Runs a command to its end and resolves with what it printed; several can run at once. */
export async function outputOn(...how: Parameters<typeof startOn>): Promise<string> {
  const child = startOn(...how)
  const { code, stdout, stderr } = await collect(child)
  if (code !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with ${code}: ${stdout}${stderr}`)
  return stdout
}
