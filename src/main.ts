// The entry point: runs the command line. The only file that touches the process.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type EnvFile, parseEnvFile } from './cli/env-file.ts'
import { programName } from './cli/terminal.ts'
import { run } from './cli/run.ts'

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const
const LEFT_OPEN_MS = 500
/** A second signal ends the process at once, unless it comes with the first: some send one to the process and to its group. */
const SAME_SIGNAL_MS = 1000

// The output may be closed by its reader, as `head` does, or its disk may be full. The service then stops in order; any
// other command just exits.
let outputFailed = false
let isStopping = false
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (outputFailed) return
  outputFailed = true
  if (error.code !== 'EPIPE') {
    process.stderr.write(`petstore: The output cannot be written: ${error.message}.\n`)
    process.exitCode = 1
  }
  if (!isStopping && !process.emit('SIGTERM', 'SIGTERM')) process.exit()
})
// There is nowhere left to report it.
process.stderr.on('error', () => {})

const { PETSTORE_CALLED_AS: calledAs, PATH: searchPath } = process.env
const envFile = readEnvFile('.env')
const exitCode = await run(process.argv.slice(2), {
  env: { ...envFile.variables, ...withoutEmpty(process.env) },
  ignoredLines: envFile.ignoredLines,
  program: programName(calledAs, fileURLToPath(new URL('../bin/petstore', import.meta.url)), process.cwd(), searchPath),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  pid: process.pid,
  nodeVersion: process.version,
  clock: Date.now,
  stopSignal,
  kill: () => process.kill(process.pid, 'SIGKILL'),
})
process.exitCode ??= exitCode
// What is left open, such as a connection to a database that hangs, keeps the process no longer than this.
setTimeout(() => process.exit(), LEFT_OPEN_MS).unref()

function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    const stop = (signal: string) => {
      isStopping = true
      resolve(signal)
      setTimeout(() => STOP_SIGNALS.forEach((name) => process.removeListener(name, stop)), SAME_SIGNAL_MS).unref()
    }
    for (const name of STOP_SIGNALS) process.on(name, stop)
  })
}

/** An empty variable counts as unset, so it does not hide the one of the file. */
function withoutEmpty(variables: NodeJS.Dict<string>): NodeJS.Dict<string> {
  return Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''))
}

function readEnvFile(path: string): EnvFile {
  try {
    return parseEnvFile(readFileSync(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { variables: {}, ignoredLines: [] }
    process.stderr.write(`petstore: The file ${path} holds settings but cannot be read: ${(error as Error).message}.\n`)
    return process.exit(2)
  }
}
