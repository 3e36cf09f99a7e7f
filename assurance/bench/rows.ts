// The rows of the bench: a request, and the share of the ceiling's rate that it must reach and should reach.
import { encodeCursor } from '../../src/contract/list-query.ts'

export interface Row {
  id: string
  title: string
  method: 'GET' | 'POST'
  /** The path below /v1. `{cursor}` is replaced by a cursor that was never sent before. */
  path: string
  body?: string
  key: 'good' | 'malformed'
  status: number
  /** Rows that write use separate servers, so that the other rows always read 1,000 animals. */
  writes: boolean
  atLeast: number
  aim: number
}

const read = { method: 'GET', key: 'good', status: 200, writes: false } as const

export const ROWS: readonly Row[] = [
  { ...read, id: 'list-20', title: 'list, 20 animals', path: '/pets', atLeast: 0.7, aim: 0.85 },
  { ...read, id: 'list-100', title: 'list, 100 animals', path: '/pets?limit=100', atLeast: 0.7, aim: 0.85 },
  {
    ...read,
    id: 'list-status',
    title: 'list, 20 of one status',
    path: '/pets?status=available',
    atLeast: 0.7,
    aim: 0.85,
  },
  {
    ...read,
    id: 'list-cold',
    title: 'list, a page never asked before',
    path: '/pets?cursor={cursor}',
    atLeast: 0.3,
    aim: 0.4,
  },
  { ...read, id: 'get', title: 'get one animal', path: '/pets/500', atLeast: 0.6, aim: 0.8 },
  {
    id: 'create',
    title: 'create, durable',
    method: 'POST',
    path: '/pets',
    body: '{"name":"Rex the Brave","categoryId":3,"status":"available"}',
    key: 'good',
    status: 201,
    writes: true,
    atLeast: 0.5,
    aim: 0.6,
  },
  {
    ...read,
    id: 'refuse',
    title: '401, a malformed key',
    path: '/pets',
    key: 'malformed',
    status: 401,
    atLeast: 0.7,
    aim: 0.85,
  },
]

/** The limits of a list while creates run at full speed, relative to the same list alone. */
export const MIXED = { title: 'list while creates run at full speed', rate: 0.5, p99: 5 } as const

/** A cursor above every id, for the one request that samples the answer of a row. */
export const SAMPLE_CURSOR = encodeCursor(1_000_001n)

export const MALFORMED_KEY = 'pets_test_000000000000000000000000000000000000'

/** Returns the choices with the ids of a list such as "get,create", or all choices without a list. */
export function named<T extends { id: string }>(choices: readonly T[], list: string | undefined): readonly T[] {
  const ids = list?.split(',') ?? choices.map(({ id }) => id)
  return ids.map((id) => {
    const choice = choices.find((each) => each.id === id)
    if (!choice) throw new Error(`${id} is none of ${choices.map((each) => each.id).join(', ')}`)
    return choice
  })
}
