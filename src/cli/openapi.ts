// petstore openapi: prints the OpenAPI document; without configured addresses, as it is committed.
import { type Command, settingOptions } from './command.ts'

export const openapi: Command = {
  name: 'openapi',
  summary: 'Print the OpenAPI document',
  takes: [],
  options: settingOptions(['baseUrl', 'stagingBaseUrl']),
  examples: ['petstore openapi > openapi.json'],
  async run({ terminal, config }) {
    // Loaded on demand, as in serve.ts.
    const { renderOpenapi } = await import('../contract/openapi.ts')
    terminal.stdout.write(renderOpenapi({ production: config.baseUrl, staging: config.stagingBaseUrl }))
  },
}
