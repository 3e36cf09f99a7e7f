// The OpenAPI document as a judge: what may be sent by it, and whether an answer is one that it describes.
import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { Compile } from 'typebox/schema'
import { INT64_MAX, INT64_MIN, isInt64 } from '../../src/contract/int64.ts'

export interface JsonSchema {
  $ref?: string
  type?: string
  format?: string
  enum?: string[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  examples?: unknown[]
  required?: string[]
  properties?: Record<string, JsonSchema>
  items?: JsonSchema
}

interface Answer {
  headers: Record<string, unknown>
  content?: Record<string, { schema: JsonSchema }>
}

export interface Operation {
  operationId: string
  parameters: {
    name: string
    in: string
    schema: JsonSchema
    example?: unknown
    examples?: Record<string, { value: unknown }>
  }[]
  requestBody?: { content: Record<string, { schema: JsonSchema; example: unknown }> }
  responses: Record<string, Answer>
}

export interface Document {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, JsonSchema> }
}

export function operationOf({ paths }: Document, id: string): Operation {
  return Object.values(paths)
    .flatMap((path) => Object.values(path))
    .find(({ operationId }) => operationId === id)!
}

const compiled = new WeakMap<JsonSchema, { Check(value: unknown): boolean }>()

/** Whether a value is valid by the document. */
export function isValid({ components }: Document, schema: JsonSchema, value: unknown): boolean {
  const check = compiled.get(schema) ?? Compile({ ...schema, components } as never)
  compiled.set(schema, check)
  return check.Check(value)
}

/** Values of a format that are just valid, and some that are not. Of an integer only those that are not. */
const OF_FORMAT: Record<string, { isValid: (value: unknown) => boolean; values: unknown[] }> = {
  int64: {
    isValid: (value) => (typeof value === 'bigint' ? isInt64(value) : Number.isSafeInteger(value)),
    values: [INT64_MIN, INT64_MAX, INT64_MIN - 1n, INT64_MAX + 1n, 1.5, 10n ** 40n],
  },
  date: {
    isValid: (value) => /^\d{4}-\d\d-\d\d$/.test(String(value)) && isMoment(`${String(value)}T00:00:00Z`),
    values: [
      '0001-01-01',
      '9999-12-31',
      '2024-02-29',
      '2026-02-29',
      '2026-13-01',
      '20260101',
      '2026-1-1',
      '2026-01-01T00:00:00Z',
    ],
  },
  'date-time': {
    isValid: (value) =>
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(String(value)) && isMoment(String(value)),
    values: [
      '2024-02-29T23:59:59Z',
      '2026-01-01T00:00:00.5+01:00',
      '2026-02-29T00:00:00Z',
      '2026-01-01T25:00:00Z',
      '2026-01-01T00:00:00',
      '2026-01-01',
      '1700000000',
    ],
  },
}

/** Whether the day exists: JavaScript takes 30 February for 2 March. */
function isMoment(text: string): boolean {
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`)
  return !Number.isNaN(Date.parse(text)) && day.toISOString().startsWith(text.slice(0, 10))
}

function formatOf({ format }: JsonSchema) {
  assert.ok(format === undefined || format in OF_FORMAT, `add values of the format ${format} above`)
  return format === undefined ? undefined : OF_FORMAT[format]
}

/** Whether a field may have this value by its schema, also where that has a format. */
export function isAllowed(schema: JsonSchema, value: unknown): boolean {
  if (typeof value === 'string' && !value.isWellFormed()) return false
  if (schema.type === 'string' && typeof value !== 'string') return false
  if (formatOf(schema)?.isValid(value) === false) return false
  const { title: _title, format: _format, ...rest } = schema as JsonSchema & { title?: string }
  return Compile(rest as never).Check(typeof value === 'bigint' ? Number(value) : value)
}

/** Values at and beyond every limit of a schema, and of another type; those of them that it allows are to be kept. */
export function hostileValues(schema: JsonSchema): unknown[] {
  const { minLength = 0, maxLength = 0 } = schema
  const texts = [
    '',
    ' ',
    '\u3000\n',
    '\0',
    'a\0',
    '\ud800',
    'e\u0301',
    ' a ',
    "Robert'); --",
    '\u001f\u007f',
    'x'.repeat(9000),
  ]
  for (const length of [minLength - 1, minLength, maxLength, maxLength + 1])
    if (length >= 0) texts.push('x'.repeat(length), '🐈'.repeat(length), ' '.repeat(length))
  return [...texts, ...(formatOf(schema)?.values ?? []), 1n, 1.5, true, null, [], {}, '1']
}

/** Fails where the answer is not one that the document describes: its status, media type and body. */
export async function assertDescribed(document: Document, operation: Operation, response: Response): Promise<string> {
  const text = await response.text()
  const told = `${operation.operationId} ${response.status} ${text.slice(0, 200)}`
  const answer = operation.responses[String(response.status)]
  assert.ok(answer, `undocumented status: ${told}`)
  assert.ok(response.status < 500, told)
  const media = response.headers.get('content-type')
  if (answer.content === undefined) {
    assert.equal(media, null, told)
    assert.equal(text, '', told)
    return text
  }
  assert.ok(media !== null && media in answer.content, `undocumented media type ${media}: ${told}`)
  assert.ok(isValid(document, answer.content[media]!.schema, JSON.parse(text)), `not as described: ${told}`)
  for (const [, digits = ''] of text.matchAll(/"(?:id|categoryId)":(-?\d+)/g)) assert.ok(isInt64(BigInt(digits)), told)
  return text
}

/** Any character that Unicode has room for; fast-check's own `binary` takes seconds for long strings. */
export const codePoint = fc
  .integer({ min: 0, max: 0x10ffff })
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code))

/** Filters values. Fails if hardly any passes: fast-check would look for one forever, and block the event loop. */
export function onlyThose<T>(values: fc.Arbitrary<T>, isWanted: (value: T) => boolean, what: string): fc.Arbitrary<T> {
  let refused = 0
  return values.filter((value) => {
    refused = isWanted(value) ? 0 : refused + 1
    assert.ok(
      refused < 1000,
      `of 1000 random values none was ${what}: generate them in test/harness/openapi-document.ts`,
    )
    return refused === 0
  })
}

/** Values that the document calls valid. */
export function validValues(document: Document, schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.$ref !== undefined)
    return validValues(document, document.components.schemas[schema.$ref.split('/').at(-1)!]!)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.type === 'integer') {
    return fc.bigInt({ min: BigInt(schema.minimum ?? INT64_MIN), max: BigInt(schema.maximum ?? INT64_MAX) })
  }
  if (schema.format === 'date')
    return fc
      .date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
      .map((date) => date.toISOString().slice(0, 10))
  if (schema.type === 'string') {
    assert.equal(schema.format, undefined, 'add values of this format above')
    const { minLength = 0, maxLength = 300, pattern = '' } = schema
    const texts = fc.string({ unit: codePoint, minLength, maxLength, size: 'max' })
    return onlyThose(texts, (text) => new RegExp(pattern, 'u').test(text), `text that matches ${pattern}`)
  }
  assert.equal(schema.type, 'object')
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => [name, validValues(document, field)])
  return fc.record(Object.fromEntries(fields) as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: (schema.required ?? []) as never[],
  })
}

// TypeScript's library does not know it yet.
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }

/** JSON with the digits of every bigint. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => (typeof part === 'bigint' ? rawJSON(String(part)) : part))
}
