// The rows of the bench: what is asked, and what share of the ceiling it must and should reach.
import { encodeCursor } from '../src/contract/list-query.ts'

export interface Row {
  id: string
  title: string
  method: 'GET' | 'POST'
  /** Below /v1; `{cursor}` stands for a cursor that was never sent before. */
  path: string
  body?: string
  key: 'good' | 'malformed'
  status: number
  /** Rows that write have servers of their own, so that the others read 1,000 animals throughout. */
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

/** List while creates run at full speed: against the same list with nothing else going on. */
export const MIXED = { title: 'list while creates run at full speed', rate: 0.5, p99: 5 } as const

/** A cursor above every animal, for the one request that shows what a row answers. */
export const SAMPLE_CURSOR = encodeCursor(1_000_001n)

export const MALFORMED_KEY = 'pets_test_000000000000000000000000000000000000'

/** Those with the ids of a list like "get,create"; all without a list. */
export function named<T extends { id: string }>(choices: readonly T[], list: string | undefined): readonly T[] {
  const ids = list?.split(',') ?? choices.map(({ id }) => id)
  return ids.map((id) => {
    const choice = choices.find((each) => each.id === id)
    if (!choice) throw new Error(`${id} is none of ${choices.map((each) => each.id).join(', ')}`)
    return choice
  })
}
