// Compiles the C libraries of this folder that drills preload into a process (LD_PRELOAD).
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '../../test/harness/programs/processes.ts'

export const COMPILER = '/usr/bin/gcc'

/** Compiles a shim into the given folder and returns the path of the library. */
export function compileShim(name: 'power-cut-shim' | 'slow-sync-shim', folder: string): string {
  const library = join(folder, `${name}.so`)
  run(COMPILER, ['-O2', '-shared', '-fPIC', '-o', library, fileURLToPath(new URL(`${name}.c`, import.meta.url))])
  return library
}
