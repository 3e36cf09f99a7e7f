// The entry point: runs the command line. The only file that touches the process.
import { readFileSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'

// Keeps compiled code between starts, which halves the start; hence before our first import. The folder is our own: others
// could put code into a shared one.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)))
const { run } = await import('./cli/run.ts')

// The reader of the output may go away, as `head` does. The service then stops in order; any other command just exits.
let outputEnded = false
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  if (!outputEnded && !process.emit('SIGTERM', 'SIGTERM')) process.exit()
  outputEnded = true
})

process.exitCode = await run(process.argv.slice(2), {
  env: { ...readEnvFile('.env'), ...process.env },
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  clock: Date.now,
  stopSignal,
})

function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal))
  })
}

function readEnvFile(path: string): NodeJS.Dict<string> {
  try {
    return parseEnv(readFileSync(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    process.stderr.write(`petstore: The file ${path} holds settings but cannot be read: ${(error as Error).message}.\n`)
    return process.exit(2)
  }
}
