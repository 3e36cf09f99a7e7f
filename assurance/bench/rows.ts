// What the benches ask for: the works of `npm run bench clients`, and the rows of `npm run bench requests`, which are works with the share
// of the ceiling's rate that they must reach and should reach.
import { encodeCursor } from '../../src/contract/list-query.ts'

export interface Work {
  id: string
  title: string
  method: 'GET' | 'POST'
  /**
   * The path below /v1. `{cursor}` is replaced by a cursor that was never sent before, `{id}` by a random id of the first `ANIMALS`, and
   * `{page}` by the cursor of one.
   */
  path: string
  /** In a work of GET requests, each tenth request posts the body instead. */
  body?: string
  key: 'good' | 'malformed'
  status: number
  /** Rows that write use separate servers, so that the other rows always read 1,000 animals. */
  writes: boolean
}

export interface Row extends Work {
  atLeast: number
  aim: number
}

const read = { method: 'GET', key: 'good', status: 200, writes: false } as const
const BODY = '{"name":"Rex the Brave","categoryId":3,"status":"available"}'

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
    body: BODY,
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

/** How many animals the clients of `WORKS` ask for. */
export const ANIMALS = 20_000

/** Those that write come last, since all use the same servers. */
export const WORKS: readonly Work[] = [
  { ...read, id: 'random-get', title: 'an animal by random id', path: '/pets/{id}' },
  { ...read, id: 'random-list', title: 'a random page of 20', path: '/pets?cursor={page}' },
  { ...read, id: 'random-status', title: 'a random page of one status', path: '/pets?status=available&cursor={page}' },
  { ...read, id: 'same-get', title: 'the same animal', path: '/pets/500' },
  { ...read, id: 'same-list', title: 'the same page of 20', path: '/pets' },
  { ...read, id: 'nine-to-one', title: 'nine lists and a create', path: '/pets', body: BODY, writes: true },
  {
    id: 'create',
    title: 'a create',
    method: 'POST',
    path: '/pets',
    body: BODY,
    key: 'good',
    status: 201,
    writes: true,
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
