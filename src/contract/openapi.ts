// The OpenAPI 3.1 document, made from the contract.
import { ErrorSchema } from './errors.ts'
import { int64Schema } from './int64.ts'
import { LIST_PARAMETERS } from './list-query.ts'
import { answersOf, HEADERS } from './openapi-answers.ts'
import { BASE_PATH, type Environment, IDEMPOTENCY, OPERATIONS, type Operation, VERSION } from './operations.ts'
import { NewPetSchema, PetSchema, PetStatusSchema } from './pets.ts'

export interface Addresses {
  production?: string | undefined
  staging?: string | undefined
  /** The environment of the deployment that serves the document; undefined in the committed form. */
  here?: Environment
}

export function openapiDocument(addresses: Addresses = {}): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of OPERATIONS) {
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: describeOperation(operation) }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Petstore',
      version: VERSION,
      summary: "A store's animals over HTTP",
      description:
        "The service keeps a store's animals. Three operations exist: list animals, add one, fetch one (deprecated). " +
        'Each needs an API key, obtained by creating an account and generating a key.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: servers(addresses),
    security: [{ apiKey: [] }],
    tags: [{ name: 'Pets', description: 'The animals of the store' }],
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
      schemas: {
        PetStatus: PetStatusSchema,
        NewPet: withStatusReference(NewPetSchema),
        Pet: withStatusReference(PetSchema),
        Error: ErrorSchema,
      },
      headers: HEADERS,
    },
  }
}

/** As it is committed and served: readable, one line feed at its end. */
export function renderOpenapi(addresses?: Addresses): string {
  return JSON.stringify(openapiDocument(addresses), null, 2) + '\n'
}

function servers({ production, staging, here }: Addresses): object[] {
  const listed = [
    server('production', production, 'base_url', `https://petstore.example${BASE_PATH}`),
    server('staging', staging, 'staging_base_url', `https://staging.petstore.example${BASE_PATH}`),
  ]
  if (here === undefined) return listed
  // A deployment lists itself first, and only the addresses it was told.
  const own = here === 'production' ? production : staging
  const known = [production && listed[0], staging && listed[1]].filter((entry) => typeof entry === 'object')
  if (own === undefined) return [{ url: BASE_PATH, description: `This deployment (${here})` }, ...known]
  return here === 'production' ? known : known.toReversed()
}

function server(environment: Environment, url: string | undefined, variable: string, placeholder: string): object {
  const description = environment === 'production' ? 'Production' : 'Staging'
  if (url !== undefined) return { url, description }
  const meaning = `The base address of ${environment}, ending in ${BASE_PATH}`
  return { url: `{${variable}}`, description, variables: { [variable]: { default: placeholder, description: meaning } } }
}

function describeOperation(operation: Operation): object {
  const { id, summary, description, deprecation } = operation
  return {
    operationId: id,
    tags: ['Pets'],
    summary,
    description,
    ...(deprecation && { deprecated: true }),
    parameters: [...PARAMETERS[id], ...(operation.conditional ? [ifNoneMatch] : [])].map(leftOutAtFirst),
    ...(operation.method === 'POST' && { requestBody: newPetBody }),
    responses: answersOf(operation),
  }
}

interface Parameter {
  name: string
  in: string
  required?: boolean
  description: string
  schema: object
  example: unknown
}

/** A first try in the reference sends no optional parameter: an example cursor or key would only puzzle. */
function leftOutAtFirst({ example, ...parameter }: Parameter): object {
  if (parameter.required) return { ...parameter, example }
  return { ...parameter, examples: { example: { value: example, 'x-disabled': true } } }
}

const ifNoneMatch = {
  name: 'If-None-Match',
  in: 'header',
  description: 'An ETag of an earlier answer: 304 where it still holds',
  schema: { type: 'string' },
  example: '"jI1XyzS2v6k3bXWlUlhvZA"',
}

const PARAMETERS: Record<Operation['id'], Parameter[]> = {
  listPets: Object.entries(LIST_PARAMETERS).map(([name, parameter]) => ({ name, in: 'query', ...parameter })),
  createPet: [
    {
      name: 'Idempotency-Key',
      in: 'header',
      description: `Makes the request safe to repeat for ${IDEMPOTENCY.keptHours} hours; in quotes or not`,
      schema: { type: 'string', minLength: 1, maxLength: IDEMPOTENCY.keyMaxLength },
      example: '7d1f5c2e-3a54-4f0e-9f0b-5c1f3f3d8a10',
    },
  ],
  getPet: [
    {
      name: 'petId',
      in: 'path',
      required: true,
      description: 'Identifier of the animal',
      schema: int64Schema,
      example: 42,
    },
  ],
}

const newPetBody = {
  required: true,
  content: {
    'application/json': {
      schema: { $ref: '#/components/schemas/NewPet' },
      example: { name: 'Rex', categoryId: 3, status: 'available' },
    },
  },
}

function withStatusReference(schema: typeof NewPetSchema | typeof PetSchema): object {
  const { default: fallback } = schema.properties.status
  const status = { $ref: '#/components/schemas/PetStatus', default: fallback }
  return { ...schema, properties: { ...schema.properties, status } }
}
