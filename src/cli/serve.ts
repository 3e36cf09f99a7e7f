// petstore serve: runs the service until it is told to stop.
import { type Config, SETTINGS, type SettingName } from '../config.ts'
import { createLog, forPeople, type Log } from '../log.ts'
import { type Running, startServer } from '../server.ts'
import { type Command, CommandFailed, settingOptions } from './command.ts'
import { firstRunKey, welcome } from './welcome.ts'
import { print, type Terminal } from './terminal.ts'

export const serve: Command = {
  name: 'serve',
  summary: 'Run the service',
  takes: [],
  options: settingOptions(Object.keys(SETTINGS) as SettingName[]),
  examples: [
    'petstore serve',
    'petstore serve --port 9000 --database sqlite:/srv/petstore.db',
    'PETSTORE_ENVIRONMENT=production PETSTORE_BASE_URL=https://pets.example/v1 petstore serve --host 0.0.0.0',
  ],
  async run({ terminal, flags, config }) {
    const { stdout, clock } = terminal
    const stopSignal = terminal.stopSignal()
    const log = createLog(config.logLevel, stdout.isTTY ? forPeople((text) => stdout.write(text)) : stdout)
    const running = await startServer(config, log, { clock }).catch(explainListenFailure(config))
    await announce(terminal, config, running, log, flags['signup'] ?? terminal.env['PETSTORE_SIGNUP'])

    const signal = await stopSignal
    log.notice({ signal }, 'stopping: finishing what runs')
    await running.stop()
    log.notice('stopped')
  },
}

async function announce(terminal: Terminal, config: Config, running: Running, log: Log, signupSetting: string | undefined): Promise<void> {
  if (terminal.stdout.isTTY) {
    const key = config.environment === 'production' ? undefined : await firstRunKey(running)
    print(terminal, welcome(terminal, config, running, key))
    return
  }
  const signup = signupSetting ? config.signup : `${config.signup} (not set: open on a loopback address only)`
  log.notice({ url: running.url, admin: running.adminUrl, environment: config.environment, signup }, 'listening')
}

function explainListenFailure({ host, port }: Config) {
  const reasons: Record<string, string> = {
    EADDRINUSE: 'it is in use; stop the other program or choose another with --port',
    EACCES: 'this user may not listen there; choose a port above 1023 with --port',
    EADDRNOTAVAIL: 'this machine does not have that address; choose another with --host',
    ENOTFOUND: 'that name is not known; choose an address with --host',
  }
  return (error: unknown): never => {
    const reason = reasons[(error as { code?: string }).code ?? '']
    throw reason === undefined ? error : new CommandFailed(`Cannot listen on ${host} port ${port}: ${reason}.`)
  }
}
