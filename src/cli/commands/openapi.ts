// petstore openapi: prints the OpenAPI document; without configured addresses, this is the committed openapi.json.
import { type Command, settingOptions } from '../command.ts'

export const openapi: Command = {
  name: 'openapi',
  summary: 'Print the OpenAPI document',
  options: settingOptions(['baseUrl', 'stagingBaseUrl']),
  examples: ['petstore openapi > openapi.json'],
  async run({ terminal, config }) {
    // Imported on demand: the other commands start faster without it.
    const { renderOpenapi } = await import('../../contract/openapi.ts')
    terminal.stdout.write(renderOpenapi({ production: config.baseUrl, staging: config.stagingBaseUrl }))
  },
}
