// petstore health: asks a running instance whether it is ready, such as for the health check of a container, which has no curl.
import { get, type IncomingMessage } from 'node:http'
import { SETTINGS } from '../../config.ts'
import { type Command, CommandFailed, settingOptions } from '../command.ts'
import { report } from '../terminal.ts'

/** Not by fetch, which refuses some ports. */
function ask(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(url, { signal: AbortSignal.timeout(3000) }, (answer) => resolve(answer.destroy())).once('error', reject)
  })
}

export const health: Command = {
  name: 'health',
  summary: 'Ask the running service whether it is ready; the exit code is 1 if it is not',
  options: settingOptions(['host', 'port', 'adminHost', 'adminPort']),
  examples: ['petstore health', 'petstore health --port 8081'],
  async run({ terminal, config: { host, port, adminHost, adminPort } }) {
    // The admin port also answers while the public one refuses connections beyond its limit.
    const asked = adminPort === undefined ? host : adminHost
    const url = `http://${asked.includes(':') ? `[${asked}]` : asked}:${adminPort ?? port}/readyz`
    const { flag, variable } = SETTINGS[adminPort === undefined ? 'port' : 'adminPort']
    const { statusCode } = await ask(url).catch((error: Error) => {
      throw new CommandFailed(`${url} does not answer: ${error.message}. Another port? Set --${flag} or ${variable}.`)
    })
    if (statusCode !== 200) throw new CommandFailed(`${url} answers ${statusCode}: the service is not ready.`)
    report(terminal, `${url} is ready.`)
  },
}
