// Writes a request for each operation, from the table of operations: docs/requests.http and docs/petstore.postman_collection.json.
// Run by `npm run openapi`.
import { writeFileSync } from 'node:fs'
import { examplePath, longDate, type Operation, OPERATIONS, type Parameter } from '../src/contract/operations.ts'

const BASE_URL = 'http://127.0.0.1:8080/v1'
const API_KEY = 'pets_test_…'

/** A cursor comes from the page before; a made-up one is refused. */
const isMadeUp = ({ name }: Parameter) => name === 'cursor'

const isPath = (parameter: Parameter) => parameter.in === 'path'

/** The header's value. A create that was edited is another animal and needs another Idempotency-Key: `fresh` is replaced each time. */
const headerValue = ({ name, example }: Parameter, fresh: string) =>
  name === 'Idempotency-Key' ? fresh : String(example)

function deprecationOf({ deprecation }: Operation): string | undefined {
  return deprecation && `Deprecated: removed on ${longDate(deprecation.sunset)}. ${deprecation.advice}`
}

export function renderRequests(): string {
  return [
    '# A request for each operation, for the HTTP clients of VS Code (REST Client) and JetBrains.',
    '# Written by `npm run openapi`; changes made here are lost. Set the two variables first.',
    `@baseUrl = ${BASE_URL}`,
    `@apiKey = ${API_KEY}`,
    '',
    ...OPERATIONS.flatMap(requestOf),
  ].join('\n')
}

function requestOf(operation: Operation): string[] {
  const { id, method, summary, parameters, body } = operation
  const query = parameters.filter((parameter) => parameter.in === 'query' && !isMadeUp(parameter))
  const search = new URLSearchParams(query.map(({ name, example }) => [name, String(example)])).toString()
  const headers = parameters
    .filter((parameter) => parameter.in === 'header')
    // The only variable with a new value that both clients have: a UUID is $guid in one, $uuid in the other.
    .map((parameter) => `${parameter.name}: ${headerValue(parameter, '{{$timestamp}}')}`)
  const deprecation = deprecationOf(operation)
  return [
    `### ${summary}`,
    ...(deprecation === undefined ? [] : [`# ${deprecation}`]),
    `# @name ${id}`,
    `${method} {{baseUrl}}${examplePath(operation)}${search && `?${search}`}`,
    'Authorization: Bearer {{apiKey}}',
    ...headers,
    ...(body === undefined ? [] : ['Content-Type: application/json', '', JSON.stringify(body.example, null, 2)]),
    '',
  ]
}

export function renderCollection(): string {
  const path = OPERATIONS.flatMap(({ parameters }) => parameters.filter(isPath))
  const collection = {
    info: {
      name: 'Petstore',
      description: 'Set the variables baseUrl and apiKey first. Written by `npm run openapi`.',
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{apiKey}}', type: 'string' }] },
    variable: Object.entries({
      baseUrl: BASE_URL,
      apiKey: API_KEY,
      ...Object.fromEntries(path.map(({ name, example }) => [name, String(example)])),
    }).map(([key, value]) => ({ key, value })),
    item: OPERATIONS.map(itemOf),
  }
  return `${JSON.stringify(collection, null, 2)}\n`
}

function itemOf(operation: Operation): object {
  const { method, summary, description, path, parameters, body, success } = operation
  const query = parameters
    .filter((parameter) => parameter.in === 'query')
    .map((parameter) => ({
      key: parameter.name,
      value: isMadeUp(parameter) ? '' : String(parameter.example),
      description: parameter.description,
      ...(isMadeUp(parameter) && { disabled: true }),
    }))
  const header = parameters
    .filter((parameter) => parameter.in === 'header')
    .map((parameter) => ({
      key: parameter.name,
      value: headerValue(parameter, '{{$guid}}'),
      description: parameter.description,
    }))
  const script = [`pm.test('answers ${success.status}', () => pm.response.to.have.status(${success.status}))`]
  // The next request fetches the new animal. The id is taken as text: JSON.parse would round it.
  if (success.status === 201)
    script.push(
      `if (pm.response.code === 201) pm.collectionVariables.set('petId', /"id":(-?[0-9]+)/.exec(pm.response.text())[1])`,
    )
  return {
    name: summary,
    event: [{ listen: 'test', script: { type: 'text/javascript', exec: script } }],
    request: {
      method,
      description: [description, deprecationOf(operation)].filter((sentence) => sentence !== undefined).join(' '),
      header: [...header, ...(body === undefined ? [] : [{ key: 'Content-Type', value: 'application/json' }])],
      ...(body && {
        body: { mode: 'raw', raw: JSON.stringify(body.example, null, 2), options: { raw: { language: 'json' } } },
      }),
      url: {
        host: ['{{baseUrl}}'],
        path: path
          .slice(1)
          .replaceAll(/\{(\w+)\}/g, ':$1')
          .split('/'),
        query,
        variable: parameters.filter(isPath).map(({ name }) => ({ key: name, value: `{{${name}}}` })),
      },
    },
  }
}

if (import.meta.main) {
  writeFileSync(new URL('requests.http', import.meta.url), renderRequests())
  writeFileSync(new URL('petstore.postman_collection.json', import.meta.url), renderCollection())
}
