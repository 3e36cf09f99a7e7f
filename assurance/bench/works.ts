// What the benches ask for.
import { encodeCursor } from '../../src/contract/list-query.ts'

export interface Work {
  id: string
  title: string
  method: 'GET' | 'POST'
  /** The path below /v1. `{id}` is replaced by a random id of the first `ANIMALS`, and `{page}` by the cursor of one. */
  path: string
  /** In a work of GET requests, each tenth request posts the body instead. */
  body?: string
  key: 'good' | 'malformed'
  status: number
  /** Works that write use separate servers, so that the others always read as many animals. */
  writes: boolean
}

const read = { method: 'GET', key: 'good', status: 200, writes: false } as const
const BODY = '{"name":"Rex the Brave","categoryId":3,"status":"available"}'

/** How many animals the clients ask for. */
export const ANIMALS = 20_000

export const WORKS: readonly Work[] = [
  { ...read, id: 'random-get', title: 'an animal by random id', path: '/pets/{id}' },
  { ...read, id: 'random-list', title: 'a random page of 20', path: '/pets?cursor={page}' },
  { ...read, id: 'random-status', title: 'a random page of one status', path: '/pets?status=available&cursor={page}' },
  { ...read, id: 'same-get', title: 'the same animal', path: '/pets/500' },
  { ...read, id: 'same-list', title: 'the same page of 20', path: '/pets' },
  { ...read, id: 'same-100', title: 'the same page of 100', path: '/pets?limit=100' },
  { ...read, id: 'refuse', title: '401, a malformed key', path: '/pets', key: 'malformed', status: 401 },
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

/** A cursor above every id, for the one request that samples the answer of a work. */
export const SAMPLE_CURSOR = encodeCursor(1_000_001n)

export const MALFORMED_KEY = 'pets_test_000000000000000000000000000000000000'

/** Returns the choices with the ids of a list such as "same-get,create", or all choices without a list. */
export function named<T extends { id: string }>(choices: readonly T[], list: string | undefined): readonly T[] {
  const ids = list?.split(',') ?? choices.map(({ id }) => id)
  return ids.map((id) => {
    const choice = choices.find((each) => each.id === id)
    if (!choice) throw new Error(`${id} is none of ${choices.map((each) => each.id).join(', ')}`)
    return choice
  })
}
