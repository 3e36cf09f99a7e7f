// Reads the Deprecation (RFC 9745) and Sunset (RFC 8594) headers: the notice that an operation will be removed.
import { linkTo } from './link.ts'
import type { OperationId } from './contract.ts'

export interface DeprecationNotice {
  operation: OperationId
  /** Since when the operation is deprecated, if the service says so. */
  since: Date | undefined
  /** When the operation will be removed, if the service says so. */
  sunset: Date | undefined
  /** The address of the documentation of the deprecation. */
  documentation: string | undefined
  /** The notice as one sentence. */
  message: string
}

/** Returns undefined if the response has neither header. */
export function readDeprecation(operation: OperationId, url: URL, headers: Headers): DeprecationNotice | undefined {
  if (!headers.has('Deprecation') && !headers.has('Sunset')) return undefined
  const since = dateOf(Number(/^@(-?[0-9]+)$/.exec(headers.get('Deprecation') ?? '')?.[1]) * 1000)
  const sunset = dateOf(Date.parse(headers.get('Sunset') ?? ''))
  const documentation = linkTo('deprecation', headers.get('Link'), url)?.href
  const message =
    `The Petstore operation ${operation} is deprecated` +
    (sunset ? ` and will be removed on ${sunset.toISOString().slice(0, 10)}` : '') +
    (documentation ? `: see ${documentation}` : '.')
  return { operation, since, sunset, documentation, message }
}

function dateOf(time: number): Date | undefined {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? undefined : date
}
