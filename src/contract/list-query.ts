// The query of listPets (spec, section 4.1): describes and parses its parameters, and encodes the cursor of a page.
import { quote } from './json.ts'
import { PAGE_SIZE } from './limits.ts'
import { fieldFromText, type FieldName, FIELDS, type NewPet } from './pets.ts'
import { Problem } from './errors.ts'

/**
 * The filters of a list, with their descriptions for OpenAPI: the field of that name must equal the parameter. Each combination
 * needs an index in both engines, as `pagesOfList` orders its columns.
 */
const FILTERS = { status: 'Only animals with this status' } as const satisfies Partial<Record<FieldName, string>>

type FilterName = keyof typeof FILTERS
export const FILTER_NAMES = Object.keys(FILTERS) as FilterName[]

export type Filters = { [F in FilterName]?: NonNullable<NewPet[F]> | undefined }

export interface ListQuery extends Filters {
  limit: number
  /** Only animals with an id below this one, the last id of the previous page. */
  before?: bigint
  /** Only the animals with the next higher ids, for the previous page in the console; listPets has no such parameter. */
  after?: bigint
}

// A cursor is the position in a list, opaque to clients: the id of the last animal of the previous page.
const CURSOR_VERSION = 1
const CURSOR_BYTES = 9

const scratch = Buffer.alloc(CURSOR_BYTES, CURSOR_VERSION)

export function encodeCursor(before: bigint): string {
  scratch.writeBigInt64BE(before, 1)
  return scratch.toString('base64url')
}

/** Returns the id that the page starts below; undefined for text that `encodeCursor` did not make. */
export function decodeCursor(cursor: string): bigint | undefined {
  // Each text of 12 such characters encodes 9 bytes, and no other text encodes the same.
  if (!/^[\w-]{12}$/.test(cursor)) return undefined
  const bytes = Buffer.from(cursor, 'base64url')
  return bytes.readUInt8(0) === CURSOR_VERSION ? bytes.readBigInt64BE(1) : undefined
}

/** The parameters as OpenAPI describes them. */
export const LIST_PARAMETERS = [
  {
    name: 'limit',
    in: 'query',
    description: 'Maximum number of animals returned',
    schema: { type: 'integer', ...PAGE_SIZE },
    example: PAGE_SIZE.default,
  },
  ...FILTER_NAMES.map((name) => ({
    name,
    in: 'query' as const,
    description: FILTERS[name],
    schema: FIELDS[name].schema,
    example: FIELDS[name].schema.examples[0],
  })),
  {
    name: 'cursor',
    in: 'query',
    description: 'Where the page starts; opaque, taken from the `Link` header of the previous page',
    schema: { type: 'string' },
    example: encodeCursor(43n),
  },
] as const

/** Reads the parameters of `LIST_PARAMETERS` and ignores the others. */
export function parseListQuery(parameters: URLSearchParams): ListQuery | Problem {
  const query: ListQuery = { limit: PAGE_SIZE.default }
  for (const { name } of LIST_PARAMETERS) {
    const values = parameters.getAll(name)
    const value = values[0]
    if (value === undefined) continue
    if (values.length > 1) {
      return new Problem(`The query parameter ${name} was given ${values.length} times; give it once.`)
    }
    const violatedRule =
      name === 'limit' || name === 'cursor' ? readParameter[name](value, query) : readFilter(name, value, query)
    if (violatedRule !== undefined) {
      return new Problem(`The query parameter ${name} must be ${violatedRule}, got ${quote(value)}.`)
    }
  }
  return query
}

function readFilter(name: FilterName, text: string, query: ListQuery): string | undefined {
  const value = fieldFromText(name, text)
  if (!FIELDS[name].check(value)) return FIELDS[name].expected
  Object.assign(query, { [name]: value })
  return undefined
}

/** Each function reads one parameter into the query; for an invalid value it returns which values are valid. */
const readParameter = {
  limit(value: string, query: ListQuery): string | undefined {
    query.limit = /^[0-9]+$/.test(value) ? Number(value) : Number.NaN
    if (query.limit >= PAGE_SIZE.minimum && query.limit <= PAGE_SIZE.maximum) return undefined
    return `a whole number from ${PAGE_SIZE.minimum} to ${PAGE_SIZE.maximum} in decimal digits`
  },
  cursor(value: string, query: ListQuery): string | undefined {
    const before = decodeCursor(value)
    if (before === undefined) return 'taken unchanged from the Link header of the page before'
    query.before = before
    return undefined
  },
}

export function nextPageQuery(query: ListQuery, lastId: bigint): string {
  return [`limit=${query.limit}`, ...filterParts(query), `cursor=${encodeCursor(lastId)}`].join('&')
}

/** Returns the query string of the first page with these filters; empty without filters. */
export function filterQuery(filters: Filters): string {
  return filterParts(filters).join('&')
}

function filterParts(filters: Filters): string[] {
  return FILTER_NAMES.filter((name) => filters[name] !== undefined).map(
    (name) => `${name}=${encodeURIComponent(String(filters[name]))}`,
  )
}
