// Marks every answer of a deprecated operation (RFC 9745, RFC 8594); answers 410 from its removal date on.
import { Refusal } from '../contract/errors.ts'
import { BASE_PATH, isRemoved, type Operation } from '../contract/operations.ts'
import type { Call } from './call.ts'

/** Returns the headers that mark an operation as deprecated. The links are relative if no `baseUrl` is configured. */
export function deprecationHeaders(operation: Operation, baseUrl: string | undefined): readonly string[] {
  if (operation.deprecation === undefined) return []
  const { since, sunset, documentation, successor } = operation.deprecation
  const base = baseUrl ?? BASE_PATH
  const root = base.slice(0, -BASE_PATH.length)
  return [
    'Deprecation',
    `@${since / 1000}`,
    'Sunset',
    new Date(sunset).toUTCString(),
    'Link',
    `<${root}${documentation}>; rel="deprecation"; type="text/html", <${base}${successor}>; rel="successor-version"`,
  ]
}

export function createRemovedCheck(clock: () => number) {
  return ({ operation }: Call): Refusal | undefined => {
    if (operation === undefined || !isRemoved(operation, clock())) return undefined
    const { sunset, successor } = operation.deprecation!
    const message = `${operation.id} was removed on ${new Date(sunset).toISOString().slice(0, 10)}. Use GET ${BASE_PATH}${successor} instead.`
    return new Refusal('operation_removed', message)
  }
}
