// petstore health: asks a running instance whether it is ready, such as for the health check of a container, which has no curl.
import { type Command, CommandFailed, settingOptions } from './command.ts'
import { report } from './terminal.ts'

export const health: Command = {
  name: 'health',
  summary: 'Ask the running service whether it is ready; the exit code is 1 if it is not',
  takes: [],
  options: settingOptions(['host', 'port', 'adminHost', 'adminPort']),
  examples: ['petstore health', 'petstore health --port 8081'],
  async run({ terminal, config: { host, port, adminHost, adminPort } }) {
    // The admin port also answers while the public one refuses connections beyond its limit.
    const asked = adminPort === undefined ? host : adminHost
    const url = `http://${asked.includes(':') ? `[${asked}]` : asked}:${adminPort ?? port}/readyz`
    const answer = await fetch(url, { signal: AbortSignal.timeout(3000) }).catch((error: Error) => {
      throw new CommandFailed(`${url} does not answer: ${((error.cause ?? error) as Error).message}.`)
    })
    if (!answer.ok) throw new CommandFailed(`${url} answers ${answer.status}: ${(await answer.text()).trim()}`)
    report(terminal, `${url} is ready.`)
  },
}
