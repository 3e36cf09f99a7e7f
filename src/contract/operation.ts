// What the description of an operation consists of. Routing, checks, OpenAPI, reference and tests are made from it.
import type { ErrorCode } from './errors.ts'
import type { HeaderName } from './headers.ts'

export interface Operation {
  id: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Relative to the base path; a parameter is a whole part of it, such as `{petId}`. */
  path: string
  tag: Tag
  summary: string
  description: string
  parameters: readonly Parameter[]
  body?: Content
  success: Success
  /** Whether its answers carry an ETag and take If-None-Match. */
  conditional: boolean
  /** Refusals of its own, beside those that any operation can give. */
  refusals: readonly ErrorCode[]
  deprecation?: Deprecation
}

/** The groups of the reference. */
export const TAGS = {
  Pets: 'The animals of the store',
} as const
export type Tag = keyof typeof TAGS

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description: string
  schema: object
  example: unknown
}

export interface Content {
  /** A schema with a title becomes a component of the OpenAPI document. */
  schema: object
  example: unknown
}

export interface Success {
  status: 200 | 201 | 204
  description: string
  /** Left out where the answer has no body. */
  content?: Content
  /** Headers of this answer alone, beside those of every answer. */
  headers?: readonly HeaderName[]
}

export interface Deprecation {
  /** Deprecated since, and removed from then on; milliseconds since the epoch, UTC. */
  since: number
  sunset: number
  /** What to call instead, relative to the base address, and how to say it. */
  successor: string
  advice: string
  /** How to move to the successor, in a few sentences. */
  guide: string
  /** Where people read about it, relative to the deployment's root. */
  documentation: string
}

export function isRemoved({ deprecation }: Operation, now: number): boolean {
  return deprecation !== undefined && now >= deprecation.sunset
}

/** The path with an example in the place of each parameter, such as `/pets/42`. */
export function examplePath({ path, parameters }: Operation): string {
  return parameters.reduce((filled, { name, example }) => filled.replace(`{${name}}`, String(example)), path)
}

/** A date as people write it, such as "5 December 2030". */
export function longDate(at: number): string {
  return new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })
}
