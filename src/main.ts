// The entry point: runs the command line with this process's arguments, environment, streams and signals.
import { statSync } from 'node:fs'
import { isSea } from 'node:sea'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { programName } from './cli/terminal.ts'
import { run } from './cli/run.ts'
import { readSmallFile, reasonOf } from './store/database/files.ts'

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const
/** How long a handle that stays open, such as a connection to a database that hangs, may keep the process alive. */
const LEFT_OPEN_MS = 500
/** A second signal ends the process, but only after this time: before it, the same Ctrl-C may arrive twice. */
const SAME_SIGNAL_MS = 1000

// Standard output fails if its reader closes it, as `head` does, or if its disk is full. A command that handles stop
// signals, such as `export`, then stops gracefully; any other command exits. `serve` writes its log by log.ts, and goes on.
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
// A failure of standard error cannot be reported, and must not end the process.
process.stderr.on('error', () => {})

const { PETSTORE_CALLED_AS: launched, PATH: searchPath } = process.env
const calledAs = isSea() ? process.argv0 : launched
const envFile = readEnvFile('.env')
// Not settings, but read from .env too. The driver of PostgreSQL looks for what an address leaves out in the environment of the process.
for (const name of ['PGUSER', 'PGPASSWORD', 'PGDATABASE', 'NO_COLOR', 'TERM']) {
  const value = envFile[name]
  if (value !== undefined) process.env[name] ||= value
}

const exitCode = await run(process.argv.slice(2), {
  env: process.env,
  envFile,
  program: programName(calledAs, fileURLToPath(new URL('../bin/petstore', import.meta.url)), process.cwd(), searchPath),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  pid: process.pid,
  events: process,
  nodeVersion: process.version,
  clock: Date.now,
  stopSignal,
  kill: () => process.kill(process.pid, 'SIGKILL'),
})
process.exitCode ??= exitCode
setTimeout(() => process.exit(), LEFT_OPEN_MS).unref()

function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    const stop = (signal: string) => {
      isStopping = true
      resolve(signal)
      setTimeout(() => STOP_SIGNALS.forEach((name) => process.removeListener(name, stop)), SAME_SIGNAL_MS).unref()
    }
    for (const name of STOP_SIGNALS) process.on(name, stop)
    // The terminal was closed. It may come several times, from the system and from the shell, so it never ends the process at once.
    process.on('SIGHUP', stop)
  })
}

function readEnvFile(path: string): NodeJS.Dict<string> {
  try {
    const settings = parseEnv(readSmallFile(path))
    warnOfOthers(path)
    return settings
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    process.stderr.write(`petstore: The file ${path} holds settings but cannot be read: ${reasonOf(error as Error)}.\n`)
    return process.exit(2)
  }
}

/** Warns if others may change the settings, such as the database. Windows has other rights. */
function warnOfOthers(path: string): void {
  const { mode, uid } = statSync(path)
  const user = process.getuid?.()
  if (user === undefined) return
  const fix = (mode & 0o022) !== 0 ? `chmod go-w ${path}` : ![0, user].includes(uid) && `chown ${user} ${path}`
  if (fix)
    process.stderr.write(`petstore: Warning: other users can change the settings in ${path}. To prevent that: ${fix}\n`)
}
