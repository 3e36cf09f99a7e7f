// Generates the OpenAPI 3.1 document from the table of operations.
import { errorBody, type ErrorCode, ERRORS, ErrorSchema, type ErrorStatus } from './errors.ts'
import {
  BASE_PATH,
  COMMON_REFUSALS,
  type HeaderName,
  HEADERS,
  INTERFACE_VERSION,
  longDate,
  type Operation,
  OPERATIONS,
  type Parameter,
  TAGS,
} from './operations.ts'
import type { Environment } from './environments.ts'
import { INT64_FIELDS } from './pets.ts'

export interface Addresses {
  production?: string | undefined
  staging?: string | undefined
  /** The deployment that serves the document, and its address if none is configured; undefined for the committed openapi.json. */
  here?: { environment: Environment; address: string }
}

const INT64_NOTE =
  `**64-bit integers.** ${INT64_FIELDS.map((name) => `\`${name}\``).join(' and ')} use the whole int64 range. ` +
  '`JSON.parse` of JavaScript rounds integers beyond ' +
  '±2^53: 9223372036854775807 becomes 9223372036854776000. Parse them as text or bigint, with a reviver that reads ' +
  '`context.source`, or with the client of this service.'

const COMPATIBILITY_NOTE =
  '**Compatibility.** Version 1 may add optional parameters, headers, error codes and fields: ignore what you do not know. ' +
  'What is documented keeps its meaning.'

export function openapiDocument(addresses: Addresses = {}): object {
  const schemas: Record<string, object> = {}
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of OPERATIONS) {
    const description = withReferences(describeOperation(operation), schemas) as object
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: description }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Petstore',
      version: INTERFACE_VERSION,
      summary: "A store's animals over HTTP",
      description:
        "The service keeps a store's animals. Every operation needs an API key, obtained by creating an account and " +
        `generating a key.\n\n${INT64_NOTE}\n\n${COMPATIBILITY_NOTE}`,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: servers(addresses),
    security: [{ apiKey: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'pets_live_… in production, pets_test_… in staging',
          description: 'An API key, obtained by creating an account and generating a key.',
        },
      },
      schemas,
      headers: HEADERS,
    },
  }
}

/** Renders the document as it is committed and served: indented, with a final line feed. */
export function renderOpenapi(addresses?: Addresses): string {
  return JSON.stringify(openapiDocument(addresses), null, 2) + '\n'
}

function servers({ production, staging, here }: Addresses): object[] {
  const listed = [
    server('production', production, 'base_url', `https://petstore.example${BASE_PATH}`),
    server('staging', staging, 'staging_base_url', `https://staging.petstore.example${BASE_PATH}`),
  ]
  if (here === undefined) return listed
  // A deployment lists its own address first, and otherwise only configured addresses.
  const { environment, address } = here
  const own = environment === 'production' ? production : staging
  const known = [production && listed[0], staging && listed[1]].filter((entry) => typeof entry === 'object')
  if (own === undefined) return [{ url: address, description: `This deployment (${environment})` }, ...known]
  return environment === 'production' ? known : known.toReversed()
}

function server(environment: Environment, url: string | undefined, variable: string, placeholder: string): object {
  const description = environment === 'production' ? 'Production' : 'Staging'
  if (url !== undefined) return { url, description }
  const value = { default: placeholder, description: `The base address of ${environment}, ending in ${BASE_PATH}` }
  return { url: `{${variable}}`, description, variables: { [variable]: value } }
}

function describeOperation(operation: Operation): object {
  const { id, method, repeat, tag, summary, parameters, body, deprecation } = operation
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: descriptionOf(operation),
    'x-repeat': repeat,
    ...(deprecation && { deprecated: true }),
    parameters: [...parameters, ...(method === 'GET' ? [ifNoneMatch] : []), rehearse].map(disableExample),
    ...(body && { requestBody: { required: true, content: json({ schema: body.schema, example: body.example }) } }),
    responses: responsesOf(operation),
  }
}

function json(content: object): object {
  return { 'application/json': content }
}

/** Returns the description, with a notice if the operation is deprecated. */
export function descriptionOf({ description, deprecation }: Operation): string {
  if (deprecation === undefined) return description
  const { sunset, advice } = deprecation
  return `${description} **Deprecated: to be removed on ${longDate(sunset)}.** ${advice} From that date on the operation answers 410.`
}

/** Disables the example of an optional parameter in the reference's form: a made-up cursor or key would be refused. */
function disableExample({ example, ...parameter }: Parameter): object {
  if (parameter.required) return { ...parameter, example }
  return { ...parameter, examples: { example: { value: example, 'x-disabled': true } } }
}

const ifNoneMatch: Parameter = {
  name: 'If-None-Match',
  in: 'header',
  description: 'The ETag of an earlier answer; 304 if it is still current',
  schema: { type: 'string' },
  example: '"jI1XyzS2v6k3bXWlUlhvZA"',
}

const rehearse: Parameter = {
  name: 'Petstore-Rehearse',
  in: 'header',
  description:
    'Staging only: rehearses a failure, to test a client with. `503`, `429`, `delay=2s`, `disconnect` (nothing is done), or ' +
    '`disconnect-after-commit` (it is done, but the answer is lost). Production ignores it.',
  // Tools send every example and default; these change nothing.
  schema: { type: 'string', default: '' },
  example: 'delay=0s',
}

/** Moves every schema that has a title to the components, and leaves a reference in its place. */
function withReferences(part: unknown, schemas: Record<string, object>): unknown {
  if (Array.isArray(part)) return part.map((item) => withReferences(item, schemas))
  if (typeof part !== 'object' || part === null) return part
  const { title } = part as { title?: unknown }
  const copy = Object.fromEntries(Object.entries(part).map(([name, value]) => [name, withReferences(value, schemas)]))
  if (typeof title !== 'string' || !('type' in part)) return copy
  schemas[title] = copy
  return { $ref: `#/components/schemas/${title}` }
}

const ALWAYS: readonly HeaderName[] = [
  'Request-Id',
  'Cache-Control',
  'X-Content-Type-Options',
  'Access-Control-Allow-Origin',
  'Access-Control-Expose-Headers',
  'Vary',
]

const RATE: readonly HeaderName[] = ['RateLimit', 'RateLimit-Policy']

/** Statuses that only checks before the rate limit answer (`steps` in http/app.ts). */
const BEFORE_RATE: ReadonlySet<ErrorStatus> = new Set([401, 408, 410, 417, 431])

const ERROR_HEADERS: Partial<Record<ErrorStatus, readonly HeaderName[]>> = {
  401: ['WWW-Authenticate'],
  409: ['Retry-After'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

/** The descriptions of statuses that several errors can have; the others have the cause of their error. */
const ERROR_DESCRIPTIONS: Partial<Record<ErrorStatus, string>> = {
  400: 'The request is malformed or has invalid values',
  401: 'API key missing or invalid',
  404: 'The requested resource cannot be found',
}

export function responsesOf(operation: Operation): Record<string, object> {
  const { method, success, refusals } = operation
  const validator: readonly HeaderName[] = method === 'GET' ? ['ETag'] : []
  const headers = headersOf(operation, [...RATE, ...validator, ...(success.headers ?? [])])
  const responses: Record<string, object> = {
    [success.status]: {
      description: success.description,
      headers,
      ...(success.content && { content: json(success.content) }),
    },
  }
  if (method === 'GET') responses[304] = { description: 'Not modified since the ETag in If-None-Match', headers }
  const byStatus = Map.groupBy([...refusals, ...COMMON_REFUSALS], (code) => ERRORS[code].status)
  for (const [status, codes] of [...byStatus].toSorted(([a], [b]) => a - b)) {
    const rate = BEFORE_RATE.has(status) ? [] : RATE
    const examples = Object.fromEntries(codes.map((code) => [code, errorExample(code)]))
    responses[status] = {
      description: ERROR_DESCRIPTIONS[status] ?? ERRORS[codes[0]!].cause,
      headers: headersOf(operation, ['Link', ...rate, ...(ERROR_HEADERS[status] ?? [])]),
      content: json({ schema: ErrorSchema, examples }),
    }
  }
  return responses
}

function headersOf({ deprecation }: Operation, own: readonly HeaderName[]): Record<string, object> {
  const deprecated: readonly HeaderName[] = deprecation === undefined ? [] : ['Deprecation', 'Sunset', 'Link']
  return Object.fromEntries(
    [...ALWAYS, ...deprecated, ...own].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  )
}

function errorExample(code: ErrorCode): object {
  const { cause, fix } = ERRORS[code]
  return { summary: cause, description: fix, value: errorBody(code, cause) }
}
