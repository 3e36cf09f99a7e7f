// petstore openapi: prints the OpenAPI document; without configured addresses, its committed form.
import { renderOpenapi } from '../contract/openapi.ts'
import { type Command, settingOptions } from './command.ts'

export const openapi: Command = {
  name: 'openapi',
  summary: 'Print the OpenAPI document',
  takes: [],
  options: settingOptions(['baseUrl', 'stagingBaseUrl']),
  examples: ['petstore openapi > openapi.json'],
  async run({ terminal, config }) {
    terminal.stdout.write(renderOpenapi({ production: config.baseUrl, staging: config.stagingBaseUrl }))
  },
}
