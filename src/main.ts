// The entry: argv becomes a command. The only file that touches the process.
import { readFileSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'

// Keeps stripped and compiled code between starts, hence before the first import of ours: it halves the start. The folder
// is our own: what lies in a shared one, anybody could have put there.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)))
const { run } = await import('./cli/run.ts')

// Who reads the output may leave, as `head` does. A service then stops in order; any other command just ends.
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
