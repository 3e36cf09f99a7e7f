#!/usr/bin/env node
// The command petstore, on every platform. Node.js 20 can start it; the service runs on the Node.js that package.json pins.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
// Not by name: Node.js 20 lacks enableCompileCache.
import module from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const require = module.createRequire(import.meta.url)
const LAUNCHER = fileURLToPath(import.meta.url)
const ROOT = dirname(dirname(LAUNCHER))
const SOURCE = join(ROOT, 'src/main.ts')
const IS_CHECKOUT = existsSync(SOURCE)

// Objects of a request live briefly: a nursery of 8 MB does for them, and takes 15 MB less memory. V8 reads it at its start only.
const NURSERY = '--max-semi-space-size=8'
// SIGUSR1 opens Node's debugger to every user of the machine. Node.js 20, which only launches, does not know the option.
const NO_DEBUGGER = '--disable-sigusr1'
process.on('SIGUSR1', () => {})

/** @type {{ optionalDependencies: Record<string, string> }} */
const { optionalDependencies } = require('../package.json')
const [NEEDED = ''] = Object.values(optionalDependencies)
const isNewEnough = sortable(process.versions.node) >= sortable(NEEDED)

// For hints that name the command as it was called. On Windows a script of npm stands between.
if (!IS_CHECKOUT) process.env['PETSTORE_CALLED_AS'] ??= process.platform === 'win32' ? 'petstore' : process.argv[1]

if (IS_CHECKOUT && !existsSync(join(ROOT, 'node_modules'))) fail('Nothing is installed yet. Run this first: npm ci')

// Node closes a listening socket that systemd has passed when the process replaces itself.
const hasSocket = process.env['LISTEN_PID'] === String(process.pid)

if (!isNewEnough) follow(pinnedNode())
else if (process.execArgv.includes(NURSERY) || hasSocket || !process.execve) await runHere()
else {
  const options = [NURSERY, NO_DEBUGGER, ...process.execArgv]
  process.execve(process.execPath, [process.execPath, ...options, LAUNCHER, ...process.argv.slice(2)])
}

/** Runs the command line in this process. */
async function runHere() {
  // Keeps compiled code between starts, which halves them. The folder is our own: others could put code into a shared one.
  module.enableCompileCache(join(ROOT, 'node_modules/.cache/compiled'))
  if (process.connected) stopWithLauncher()
  await import(IS_CHECKOUT ? '../src/main.ts' : '../dist/main.js')
}

/** The channel to the launcher closes when that ends, even by SIGKILL: no service is left without its parent. */
function stopWithLauncher() {
  process.once('disconnect', () => process.emit('SIGTERM', 'SIGTERM') || process.exit(128 + constants.signals.SIGTERM))
  process.channel?.unref()
}

/** Runs this file on another Node.js, and ends as it ends. Used where a process cannot replace itself. @param {string} node */
function follow(node) {
  const child = spawn(node, [NURSERY, NO_DEBUGGER, LAUNCHER, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  })
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP']))
    process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]))
}

/** Returns the path of the Node.js that npm installed beside this package; ends with a message where it is absent or cannot start. */
function pinnedNode() {
  const platform = `-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
  const name = Object.keys(optionalDependencies).find((each) => each.endsWith(platform))
  const reason = `Node.js ${NEEDED} or later is needed, this is ${process.versions.node}`
  const missing = `${reason}, and the package ${name}@${NEEDED} is missing: install again without --omit=optional, or install a newer Node.js.`
  if (name === undefined)
    return fail(`${reason}, and npm has none for this platform (${platform.slice(1)}): install a newer Node.js.`)
  let description
  try {
    description = require.resolve(`${name}/package.json`)
  } catch {
    return fail(missing)
  }
  const node = join(dirname(description), require(description).bin.node)
  const { status, error, stdout, stderr } = spawnSync(node, ['--version'], { encoding: 'utf8' })
  // Another version can stand in a folder above, installed for something else.
  if (status === 0) return stdout.trim() === `v${NEEDED}` ? node : fail(missing)
  if (stderr?.includes('libatomic'))
    return fail(
      'The library libatomic is missing, which Node.js needs: apt-get install libatomic1 (on Fedora: dnf install libatomic).',
    )
  return fail(`${node} cannot be started: ${error?.message ?? stderr.trim()}.`)
}

/** @param {string} message @returns {never} */
function fail(message) {
  process.stderr.write(`petstore: ${message}\n`)
  process.exit(1)
}

/** Turns a version into a number that grows with it. @param {string} version */
function sortable(version) {
  return version.split('.').reduce((sum, part) => sum * 1000 + Number(part), 0)
}
