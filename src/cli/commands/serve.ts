// petstore serve: runs the service until a signal stops it. On a terminal it prints the addresses, and how to get a key.
import { setTimeout } from 'node:timers/promises'
import { type Config, type SettingName, SETTINGS } from '../../config.ts'
import { ALLOWED } from '../../contract/environments.ts'
import { Problem } from '../../contract/errors.ts'
import { BASE_PATH, VERSION } from '../../contract/operations.ts'
import { describeDatabase, isInMemory } from '../../store/database/database-address.ts'
import { CannotListen, inheritedSocket } from '../../http/connections/listening.ts'
import type { Log } from '../../log.ts'
import type { Running } from '../../server.ts'
import { CannotCloseStore, CannotOpenStore, StoreUnavailable } from '../../store/store.ts'
import { PeerFailed } from '../../workers/channel.ts'
import { type Command, CommandFailed, type Input, settingOptions } from '../command.ts'
import { nextCommand } from '../next-command.ts'
import { accent, Interrupted, print, report, type Terminal } from '../terminal.ts'

const FIRST_KEY_DAYS = 7

/** How long a start may go on after a signal: a migration may wait for hours, and loses nothing if the process ends. */
const START_ENDS_WITHIN_MS = 5000

export const serve: Command = {
  name: 'serve',
  summary: 'Run the service',
  options: settingOptions(Object.keys(SETTINGS) as SettingName[]),
  examples: [
    'petstore serve',
    'petstore serve --port 9000 --database sqlite:/srv/petstore.db',
    'PETSTORE_ENVIRONMENT=production PETSTORE_BASE_URL=https://pets.example/v1 petstore serve --host 0.0.0.0',
  ],
  async run(input) {
    const { terminal, config } = input
    if (isInMemory(config.database) && !ALLOWED.databaseInMemory[config.environment])
      throw new CommandFailed(
        'Production is not served from a database in memory, which ends with the process. Name a file, or a PostgreSQL database.',
      )
    const stopSignal = terminal.stopSignal()
    // Imported on demand: without the HTTP stack, the other commands start in a fraction of the time.
    const [{ createLogTo }, { startServer }, { RECOVERED_LATER, serveUntilStopped }] = await Promise.all([
      import('../../log.ts'),
      import('../../server.ts'),
      import('../../http/lifecycle.ts'),
    ])
    const { stdout, events } = terminal
    const reportFailure = (message: string) => report(terminal, `petstore: ${message}`)
    const log = createLogTo({ stdout, events, report: reportFailure }, config.logLevel)
    const kill = () => {
      log.flush()
      terminal.kill()
    }
    const { env, pid, clock } = terminal
    let running: Running
    try {
      const start = startServer(config, log, { socket: inheritedSocket(env, pid), clock })
      running = await Promise.race([start, rejectAfter(stopSignal)])
    } catch (error) {
      if (!(error instanceof CannotCloseStore)) throw asStartFailure(error, terminal)
      log.error({ error }, RECOVERED_LATER)
      return kill()
    }
    await announce(input, running, log)

    const instance = { ...running, broken: running.broken.catch(asCommandFailed) }
    await serveUntilStopped(instance, stopSignal, config.drainSeconds, log, kill)
  },
}

async function announce(input: Input, running: Running, log: Log): Promise<void> {
  const { terminal, config } = input
  if (terminal.stdout.isTTY) {
    const key = isWatched(terminal, config, running)
      ? await firstRunKey(running, terminal.clock()).catch(ifUnavailable)
      : undefined
    print(terminal, welcome(input, running, key))
    return
  }
  const { url, adminUrl, signup } = running
  const details = { url, admin: adminUrl, environment: config.environment, database: describeDatabase(config.database) }
  log.notice({ ...details, signup: signup + reasonForSignup(config, running) }, 'listening')
}

async function rejectAfter(stopSignal: Promise<string>): Promise<never> {
  const signal = await stopSignal
  await setTimeout(START_ENDS_WITHIN_MS, undefined, { ref: false })
  throw new Interrupted(`Stopped by ${signal} before it served.`)
}

function ifUnavailable(error: unknown): undefined {
  if (!(error instanceof StoreUnavailable)) throw error
}

/** Whether a person at this machine reads the output. A container may have a terminal too, but its output is stored. */
function isWatched({ stdin }: Terminal, { environment }: Config, { atHome }: Running): boolean {
  return stdin.isTTY === true && atHome && ALLOWED.firstRunKey[environment]
}

function asCommandFailed(error: Error): never {
  throw error instanceof StoreUnavailable || error instanceof CannotOpenStore ? error : new CommandFailed(error.message)
}

function asStartFailure(error: unknown, terminal: Terminal): unknown {
  if (error instanceof PeerFailed) return new CommandFailed(`A worker cannot start: ${error.message}`)
  return error instanceof CannotListen ? explainListenFailure(error, terminal) : error
}

function explainListenFailure({ message, where, cause }: CannotListen, { env }: Terminal): CommandFailed {
  if (!('host' in where)) return new CommandFailed(message)
  const { host, port, setting } = where
  const option = `${env['npm_lifecycle_event'] === 'start' ? 'npm start -- ' : ''}--${setting}`
  const reasons: Record<string, string> = {
    EADDRINUSE: `it is in use; stop the other program or choose another with ${option}port`,
    EACCES: `this user may not listen there; choose a port above 1023 with ${option}port`,
    EADDRNOTAVAIL: `this machine does not have that address; choose another with ${option}host`,
    ENOTFOUND: `that host name is unknown; choose an address with ${option}host`,
    EAI_AGAIN: `that host name cannot be resolved now; choose an address with ${option}host`,
  }
  const reason = reasons[(cause as { code?: string }).code ?? ''] ?? String(cause)
  return new CommandFailed(`Cannot listen on ${host} port ${port}: ${reason}.`)
}

async function firstRunKey({ accounts, store }: Running, now: number): Promise<string | undefined> {
  if ((await store.accounts.listAccounts()).length > 0) return undefined
  const account = await accounts.createFirstRun()
  if (account === undefined) return undefined
  const made = await accounts.createKey(account, 'first run', now + FIRST_KEY_DAYS * 86_400_000, 'command line')
  return made instanceof Problem ? undefined : made.secret
}

function welcome(input: Input, running: Running, key: string | undefined): string {
  const { terminal, config } = input
  const { url, adminUrl } = running
  const rows = [
    ['API', `${url}${BASE_PATH}`],
    ['Reference', `${url}/docs`],
    ['Console', `${url}/`],
    ...(adminUrl === undefined ? [] : [['Metrics', `${adminUrl}/metrics`]]),
    ['Data', describeDatabase(config.database)],
    ...signupRows(input, running),
  ]
  const width = Math.max(...rows.map(([name = '']) => name.length))
  const lines = rows.map(([name = '', value]) => `  ${accent(terminal, name.padEnd(width))}  ${value}`)
  const curl = key && [
    '',
    `  Try it now (this key is shown once and expires in ${FIRST_KEY_DAYS} days):`,
    `  curl -H "Authorization: Bearer ${key}" ${url}${BASE_PATH}/pets`,
  ]
  return ['', `  Petstore ${VERSION}, ${config.environment}`, '', ...lines, ...(curl || []), ''].join('\n')
}

/** Explains the default of the setting `signup`; returns '' if the setting is given. */
function reasonForSignup(config: Config, { signup }: Running): string {
  if (config.signup !== undefined) return ''
  return signup === 'open'
    ? ' (not set, and only this machine reaches the service)'
    : ' (not set: open it with --signup open)'
}

function signupRows(input: Input, running: Running): string[][] {
  const { signup, url } = running
  const reason = reasonForSignup(input.config, running)
  if (signup === 'closed' && isInMemory(input.config.database)) {
    const way = 'for accounts, start with --signup open, or with a database in a file, --database sqlite:PATH'
    return [['Sign-up', `closed, and no command reaches a database in memory: ${way}`]]
  }
  if (signup === 'closed') {
    return [
      ['Sign-up', `closed: accounts are created on the command line${reason}`],
      ['Get a key', nextCommand(input, 'account', 'create', 'EMAIL')],
      ['', nextCommand(input, 'key', 'create', '--account', 'EMAIL', '--name', 'NAME')],
    ]
  }
  return [
    ['Sign-up', `open: anyone who reaches the console can create an account${reason}`],
    ['Get a key', `create an account at ${url}/, then generate a key`],
  ]
}
