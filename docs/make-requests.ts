// Writes docs/requests.http, a request for each operation, from the table of operations. Run by `npm run openapi`.
import { writeFileSync } from 'node:fs'
import { examplePath, longDate, type Operation, OPERATIONS } from '../src/contract/operations.ts'

export function renderRequests(): string {
  return [
    '# A request for each operation, for the HTTP clients of VS Code (REST Client) and JetBrains.',
    '# Written by `npm run openapi`; changes made here are lost. Set the two variables first.',
    '@baseUrl = http://127.0.0.1:8080/v1',
    '@apiKey = pets_test_…',
    '',
    ...OPERATIONS.flatMap(requestOf),
  ].join('\n')
}

function requestOf(operation: Operation): string[] {
  const { id, method, summary, parameters, body, deprecation } = operation
  const query = parameters.filter((parameter) => parameter.in === 'query' && parameter.name !== 'cursor')
  const search = new URLSearchParams(query.map(({ name, example }) => [name, String(example)])).toString()
  const headers = parameters
    .filter((parameter) => parameter.in === 'header')
    .map(({ name, example }) => `${name}: ${String(example)}`)
  return [
    `### ${summary}`,
    ...(deprecation === undefined
      ? []
      : [`# Deprecated: removed on ${longDate(deprecation.sunset)}. ${deprecation.advice}`]),
    `# @name ${id}`,
    `${method} {{baseUrl}}${examplePath(operation)}${search && `?${search}`}`,
    'Authorization: Bearer {{apiKey}}',
    ...headers,
    ...(body === undefined ? [] : ['Content-Type: application/json', '', JSON.stringify(body.example, null, 2)]),
    '',
  ]
}

if (import.meta.main) writeFileSync(new URL('requests.http', import.meta.url), renderRequests())
